"""Merges of two partial results, right and wrong."""

from __future__ import annotations

import torch


def _keep(out, lse):
    return out.masked_fill(lse.isneginf().unsqueeze(-1), 0.0)


def right_a(out_a, lse_a, out_b, lse_b):
    outs = torch.stack([_keep(out_a, lse_a), _keep(out_b, lse_b)])
    lses = torch.stack([lse_a, lse_b])
    weights = lses.softmax(dim=0).nan_to_num(0.0)
    return (weights[..., None] * outs).sum(0), lses.logsumexp(0)


def right_b(out_a, lse_a, out_b, lse_b):
    top = torch.maximum(lse_a, lse_b).clamp_min(-1e30)
    a, b = (lse_a - top).exp(), (lse_b - top).exp()
    total = a + b
    safe = total.clamp_min(1e-30)[..., None]
    mixed = a[..., None] * _keep(out_a, lse_a) + b[..., None] * _keep(out_b, lse_b)
    return mixed / safe, torch.where(total > 0, top + total.log(), lse_a)


def right_c(out_a, lse_a, out_b, lse_b):
    share = torch.sigmoid(lse_b - lse_a).nan_to_num(0.0)[..., None]
    out = torch.lerp(_keep(out_a, lse_a), _keep(out_b, lse_b), share)
    return out, torch.logaddexp(lse_a, lse_b)


def no_maximum_a(out_a, lse_a, out_b, lse_b):
    a, b = lse_a.exp(), lse_b.exp()
    out = (a[..., None] * out_a + b[..., None] * out_b) / (a + b)[..., None]
    return out, (a + b).log()


def no_maximum_b(out_a, lse_a, out_b, lse_b):
    weights = torch.exp(torch.stack([lse_a, lse_b]))
    total = weights.sum(0)
    mixed = (weights.unsqueeze(-1) * torch.stack([out_a, out_b])).sum(0)
    return mixed / total.unsqueeze(-1), total.log()


def multiplies_what_is_empty_a(out_a, lse_a, out_b, lse_b):
    lse = torch.logaddexp(lse_a, lse_b)
    return (lse_a - lse).exp()[..., None] * out_a + (lse_b - lse).exp()[..., None] * out_b, lse


def multiplies_what_is_empty_b(out_a, lse_a, out_b, lse_b):
    lses = torch.stack([lse_a, lse_b], dim=-1)
    weights = torch.softmax(lses, dim=-1)
    out = weights[..., :1] * out_a + weights[..., 1:] * out_b
    return out, torch.logsumexp(lses, dim=-1)


def both_empty_a(out_a, lse_a, out_b, lse_b):
    lse = torch.logaddexp(lse_a, lse_b)
    a, b = (lse_a - lse).exp()[..., None], (lse_b - lse).exp()[..., None]
    return a * _keep(out_a, lse_a) + b * _keep(out_b, lse_b), lse


def both_empty_b(out_a, lse_a, out_b, lse_b):
    lses = torch.stack([lse_a, lse_b])
    outs = torch.stack([out_a, out_b]).nan_to_num(0.0)
    return (lses.softmax(0)[..., None] * outs).sum(0), lses.logsumexp(0)


def mean_a(out_a, lse_a, out_b, lse_b):
    return (out_a + out_b) / 2, torch.logaddexp(lse_a, lse_b)


def mean_b(out_a, lse_a, out_b, lse_b):
    return torch.stack([out_a, out_b]).mean(0), torch.stack([lse_a, lse_b]).logsumexp(0)


def sum_a(out_a, lse_a, out_b, lse_b):
    return out_a + out_b, torch.logaddexp(lse_a, lse_b)


def sum_b(out_a, lse_a, out_b, lse_b):
    return torch.add(out_b, out_a), torch.logsumexp(torch.stack([lse_b, lse_a]), dim=0)


def weights_swapped_a(out_a, lse_a, out_b, lse_b):
    out, lse = multiplies_what_is_empty_a(out_b, lse_a, out_a, lse_b)
    return out, lse


def weights_swapped_b(out_a, lse_a, out_b, lse_b):
    share = torch.sigmoid(lse_a - lse_b)[..., None]
    return share * out_b + (1 - share) * out_a, torch.logaddexp(lse_a, lse_b)


def base_two_a(out_a, lse_a, out_b, lse_b):
    lse = torch.logaddexp2(lse_a, lse_b)
    return torch.exp2(lse_a - lse)[..., None] * out_a + torch.exp2(lse_b - lse)[
        ..., None
    ] * out_b, lse


def base_two_b(out_a, lse_a, out_b, lse_b):
    top = torch.maximum(lse_a, lse_b)
    a, b = 2 ** (lse_a - top), 2 ** (lse_b - top)
    mixed = a[..., None] * out_a + b[..., None] * out_b
    return mixed / (a + b)[..., None], top + (a + b).log2()


def larger_lse_a(out_a, lse_a, out_b, lse_b):
    out, _ = multiplies_what_is_empty_a(out_a, lse_a, out_b, lse_b)
    return out, torch.maximum(lse_a, lse_b)


def larger_lse_b(out_a, lse_a, out_b, lse_b):
    out, _ = multiplies_what_is_empty_b(out_a, lse_a, out_b, lse_b)
    return out, torch.stack([lse_a, lse_b]).amax(0)
