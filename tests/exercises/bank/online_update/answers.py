"""Updates of the running maximum and sums, right and wrong."""

from __future__ import annotations

import torch


def _top(m, scores):
    return torch.maximum(m, scores.max(dim=-1).values)


def _weights(scores, top):
    return torch.exp(scores - top.unsqueeze(-1)).nan_to_num(0.0)


def _factor(m, top):
    return torch.exp(m - top).nan_to_num(0.0)


def right_a(m, total, acc, scores, values):
    top = _top(m, scores)
    w, f = _weights(scores, top), _factor(m, top)
    return (
        top,
        total * f + w.sum(-1),
        acc * f.unsqueeze(-1) + torch.einsum("hlk,hkd->hld", w, values.to(torch.float32)),
    )


def right_b(m, total, acc, scores, values):
    m, total, acc = m.clone(), total.clone(), acc.clone()
    for key in range(scores.shape[-1]):  # one key after another
        score = scores[..., key]
        top = torch.maximum(m, score)
        f, w = _factor(m, top), _factor(score, top)
        total, acc = total * f + w, acc * f[..., None] + w[..., None] * values[:, None, key].float()
        m = top
    return m, total, acc


def not_a_number_a(m, total, acc, scores, values):
    top = torch.maximum(m, scores.amax(-1))
    f, w = (m - top).exp(), (scores - top[..., None]).exp()
    return top, f * total + w.sum(-1), f[..., None] * acc + w @ values.float()


def not_a_number_b(m, total, acc, scores, values):
    both = torch.cat([m[..., None], scores], dim=-1)
    top = both.max(dim=-1).values
    weights = torch.exp(both - top[..., None])
    old, new = weights[..., 0], weights[..., 1:]
    return top, old * total + new.sum(-1), old[..., None] * acc + torch.matmul(new, values.float())


def sixteen_bit_state_a(m, total, acc, scores, values):
    top, total, part = right_a(m, total, acc, scores, values)
    return top, total, part.to(values.dtype)


def sixteen_bit_state_b(m, total, acc, scores, values):
    top = _top(m, scores)
    w, f = _weights(scores, top), _factor(m, top)
    part = acc * f[..., None] + w @ values.float()
    return top, f * total + w.sum(dim=-1), part.type_as(values)


def nothing_rescaled_a(m, total, acc, scores, values):
    top = _top(m, scores)
    w = _weights(scores, top)
    return top, total + w.sum(-1), acc + w @ values.float()


def nothing_rescaled_b(m, total, acc, scores, values):
    top, fresh, part = right_a(m, 0 * total, 0 * acc, scores, values)
    return top, fresh + total, part + acc


def acc_not_rescaled_a(m, total, acc, scores, values):
    top = _top(m, scores)
    w = _weights(scores, top)
    return top, total * _factor(m, top) + w.sum(-1), acc + w @ values.float()


def acc_not_rescaled_b(m, total, acc, scores, values):
    _, _, part = nothing_rescaled_b(m, total, acc, scores, values)
    top, total, _ = right_b(m, total, acc, scores, values)
    return top, total, part


def sum_not_rescaled_a(m, total, acc, scores, values):
    top = _top(m, scores)
    w = _weights(scores, top)
    return top, total + w.sum(-1), acc * _factor(m, top)[..., None] + w @ values.float()


def sum_not_rescaled_b(m, total, acc, scores, values):
    _, total, _ = nothing_rescaled_b(m, total, acc, scores, values)
    top, _, part = right_b(m, total, acc, scores, values)
    return top, total, part


def _inverse(m, top):
    return torch.where(m.isneginf(), torch.zeros_like(m), torch.exp(top.neg() + m).reciprocal())


def factor_upside_down_a(m, total, acc, scores, values):
    top = _top(m, scores)
    w, f = _weights(scores, top), torch.where(m.isneginf(), 0.0, (top - m).exp())
    f = f.nan_to_num(0.0, posinf=torch.inf)
    return top, total * f + w.sum(-1), acc * f[..., None] + w @ values.float()


def factor_upside_down_b(m, total, acc, scores, values):
    top = _top(m, scores)
    w, f = _weights(scores, top), _inverse(m, top)
    return top, total.mul(f).add(w.sum(-1)), acc.mul(f.unsqueeze(-1)).add(w @ values.float())


def maximum_of_the_block_a(m, total, acc, scores, values):
    top = scores.amax(-1)
    w, f = _weights(scores, top), torch.where(m.isneginf(), 0.0, (m - top).exp())
    return top, total * f + w.sum(-1), acc * f[..., None] + w @ values.float()


def maximum_of_the_block_b(m, total, acc, scores, values):
    top, _ = torch.max(scores, dim=2)
    w = _weights(scores, top)
    f = torch.exp(m - top).masked_fill(m == -torch.inf, 0.0)
    return top, f * total + w.sum(2), f.unsqueeze(2) * acc + torch.bmm(w, values.float())


def divided_too_soon_a(m, total, acc, scores, values):
    top, total, part = right_a(m, total, acc, scores, values)
    return top, total, (part / total[..., None]).nan_to_num(0.0)


def divided_too_soon_b(m, total, acc, scores, values):
    top, total, part = right_b(m, total, acc, scores, values)
    return top, total, part / total.clamp_min(1e-30).unsqueeze(-1)
