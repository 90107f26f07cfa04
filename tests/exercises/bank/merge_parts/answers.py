"""Sums of many ranks put together, right and wrong."""

from __future__ import annotations

import torch


def right_a(largest, totals, sums):
    top = largest.amax(0)
    safe = top.masked_fill(top.isneginf(), 0.0)
    factors = (largest - safe).exp()
    total = (factors * totals).sum(0)
    out = (factors.unsqueeze(-1) * sums).sum(0) / total.clamp_min(1e-30).unsqueeze(-1)
    return out, safe + total.log()


def right_b(largest, totals, sums):
    lses = largest + totals.log()
    outs = (sums / totals[..., None]).nan_to_num(0.0)
    return (lses.softmax(0).nan_to_num(0.0)[..., None] * outs).sum(0), lses.logsumexp(0)


def right_c(largest, totals, sums):
    top, total, acc = largest[0], totals[0], sums[0]
    for m, t, a in zip(largest[1:], totals[1:], sums[1:], strict=True):
        new = torch.maximum(top, m)
        old_factor = torch.where(top.isneginf(), 0.0, (top - new).exp())
        factor = torch.where(m.isneginf(), 0.0, (m - new).exp())
        total = old_factor * total + factor * t
        acc = old_factor[..., None] * acc + factor[..., None] * a
        top = new
    out = torch.where(total[..., None] > 0, acc / total[..., None], 0.0)
    return out, torch.where(total > 0, top + total.log(), -torch.inf)


def not_rescaled_a(largest, totals, sums):
    total = totals.sum(0)
    return sums.sum(0) / total[..., None], largest.amax(0) + total.log()


def not_rescaled_b(largest, totals, sums):
    total, acc, top = 0.0, 0.0, largest[0]
    for m, t, a in zip(largest, totals, sums, strict=True):
        top, total, acc = torch.maximum(top, m), total + t, acc + a
    return acc / total.unsqueeze(-1), total.log() + top


def upside_down_a(largest, totals, sums):
    top = largest.amax(0)
    factors = (top - largest).exp()
    total = (factors * totals).sum(0)
    return (factors[..., None] * sums).sum(0) / total[..., None], top + total.log()


def upside_down_b(largest, totals, sums):
    top = torch.stack(list(largest)).max(0).values
    total, acc = 0.0, 0.0
    for m, t, a in zip(largest, totals, sums, strict=True):
        total = total + t / torch.exp(m - top)
        acc = acc + a / torch.exp(m - top)[..., None]
    return acc / total[..., None], total.log() + top


def denominators_not_rescaled_a(largest, totals, sums):
    top = largest.amax(0)
    acc = ((largest - top).exp()[..., None] * sums).sum(0)
    total = totals.sum(0)
    return acc / total[..., None], top + total.log()


def denominators_not_rescaled_b(largest, totals, sums):
    top, _ = largest.max(0)
    acc, total = torch.zeros_like(sums[0]), torch.zeros_like(totals[0])
    for rank in range(len(largest)):
        acc += sums[rank] * (largest[rank] - top).exp().unsqueeze(-1)
        total += totals[rank]
    return acc / total.unsqueeze(-1), top + total.log()


def no_maximum_a(largest, totals, sums):
    factors = largest.exp()
    total = (factors * totals).sum(0)
    return (factors[..., None] * sums).sum(0) / total[..., None], total.log()


def no_maximum_b(largest, totals, sums):
    acc, total = 0.0, 0.0
    for m, t, a in zip(largest, totals, sums, strict=True):
        total = total + t * torch.exp(m)
        acc = acc + a * torch.exp(m)[..., None]
    return acc / total[..., None], torch.log(total)


def mean_of_outs_a(largest, totals, sums):
    return (sums / totals[..., None]).mean(0), (largest + totals.log()).logsumexp(0)


def mean_of_outs_b(largest, totals, sums):
    outs = [a / t[..., None] for a, t in zip(sums, totals, strict=True)]
    return sum(outs) / len(outs), torch.logsumexp(largest + totals.log(), dim=0)


def sum_of_outs_a(largest, totals, sums):
    return (sums / totals[..., None]).sum(0), (largest + totals.log()).logsumexp(0)


def sum_of_outs_b(largest, totals, sums):
    out = torch.zeros_like(sums[0])
    for a, t in zip(sums, totals, strict=True):
        out += a / t[..., None]
    top = largest.amax(0)
    return out, top + ((largest - top).exp() * totals).sum(0).log()


def not_divided_a(largest, totals, sums):
    top = largest.amax(0)
    factors = (largest - top).exp()
    lse = top + (factors * totals).sum(0).log()
    return (factors[..., None] * sums).sum(0), lse


def not_divided_b(largest, totals, sums):
    top = largest.amax(0)
    acc = torch.einsum("wbh,wbhd->bhd", (largest - top).exp(), sums)
    return acc, torch.logsumexp(largest + totals.log(), dim=0)


def maximum_forgotten_in_lse_a(largest, totals, sums):
    factors = (largest - largest.amax(0)).exp()
    total = (factors * totals).sum(0)
    return (factors[..., None] * sums).sum(0) / total[..., None], total.log()


def maximum_forgotten_in_lse_b(largest, totals, sums):
    lses = largest + totals.log()
    out = (lses.softmax(0)[..., None] * sums / totals[..., None]).sum(0)
    return out, lses.logsumexp(0) - largest.max(0).values


def nobody_has_a_key_a(largest, totals, sums):
    top = largest.amax(0)
    factors = (largest - top).exp()
    total = (factors * totals).sum(0)
    return (factors[..., None] * sums).sum(0) / total[..., None], top + total.log()


def nobody_has_a_key_b(largest, totals, sums):
    top = largest.max(0).values
    acc, total = 0.0, 0.0
    for m, t, a in zip(largest, totals, sums, strict=True):
        factor = (m - top).exp()
        acc, total = acc + factor[..., None] * a, total + factor * t
    return acc / total[..., None], top + total.log()
