"""Backwards that compute the share of a block wrongly, or round it."""

from __future__ import annotations

import torch

from tests.exercises.bank.ring_backward.pieces import (
    expanded,
    grouped_share,
    one_behind,
    over_heads,
    passed_on,
    place,
    rounded,
    share,
    travelling,
)


def lse_of_the_block_a(q, k, v, out, _lse, dout):
    def softmax_share(q, k, v, out, dout):
        keys, values = expanded(q, k), expanded(q, v)
        scale = q.shape[-1] ** -0.5
        weights = torch.softmax(q.float() @ keys.mT * scale, dim=-1)
        delta = (dout.float() * out).sum(-1, keepdim=True)
        slopes = weights * (dout.float() @ values.mT - delta) * scale
        dk, dv = slopes.mT @ q.float(), weights.mT @ dout.float()
        return slopes @ keys, over_heads(dk, k), over_heads(dv, v)

    return rounded(q, travelling(q, k, v, out, dout, share=softmax_share))


def lse_of_the_block_b(q, k, v, out, lse, dout):
    def recomputed(q, k, v, out, _lse, dout):
        scores = q.float() @ expanded(q, k).mT / q.shape[-1] ** 0.5
        return grouped_share(q, k, v, out, scores.logsumexp(-1), dout)

    return rounded(q, one_behind(q, k, v, out, lse, dout, share=recomputed))


def delta_forgotten_a(q, k, v, out, lse, dout):
    return rounded(q, travelling(q, k, v, torch.zeros_like(out), lse, dout))


def delta_forgotten_b(q, k, v, out, lse, dout):
    def plain(q, k, v, _out, lse, dout):
        scale, keys = q.shape[-1] ** -0.5, expanded(q, k)
        weights = torch.exp(
            torch.einsum("bhqd,bhkd->bhqk", q.float() * scale, keys) - lse[..., None]
        )
        slopes = weights * torch.einsum("bhqd,bhkd->bhqk", dout.float(), expanded(q, v))
        dk = torch.einsum("bhqk,bhqd->bhkd", slopes, q.float() * scale)
        dv = torch.einsum("bhqk,bhqd->bhkd", weights, dout.float())
        return scale * slopes @ keys, over_heads(dk, k), over_heads(dv, v)

    return rounded(q, one_behind(q, k, v, out, lse, dout, share=plain))


def scale_missing_a(q, k, v, *saved):
    """Scaled scores, and an unscaled dS."""
    factor = q.shape[-1] ** 0.5
    dq, dk, dv = travelling(q, k, v, *saved)
    return rounded(q, (dq * factor, dk * factor, dv))


def scale_missing_b(q, k, v, *saved):
    """q is scaled beforehand: right for dK, and forgotten in dQ."""

    def unscaled(q, k, v, out, lse, dout):
        scaled, keys = q.float() * q.shape[-1] ** -0.5, expanded(q, k)
        weights = (scaled @ keys.mT - lse.unsqueeze(-1)).exp()
        rows = torch.einsum("bhqd,bhqd->bhq", dout.float(), out.float())
        slopes = weights * (dout.float() @ expanded(q, v).mT - rows.unsqueeze(-1))
        dk, dv = slopes.mT @ scaled, weights.mT @ dout.float()
        return slopes @ keys, over_heads(dk, k), over_heads(dv, v)

    return rounded(q, one_behind(q, k, v, *saved, share=unscaled))


def scale_missing_c(q, k, v, *saved):
    """The scores are not scaled either."""

    def raw(q, k, v, out, lse, dout):
        return grouped_share(q, k, v, out, lse, dout, scale=1.0)

    return rounded(q, one_behind(q, k, v, *saved, share=raw))


def scale_twice_a(q, k, v, *saved):
    """q is scaled beforehand, and dK once more."""

    def twice(*args):
        dq, dk, dv = share(*args)
        return dq, dk * q.shape[-1] ** -0.5, dv

    return rounded(q, travelling(q, k, v, *saved, share=twice))


def scale_twice_b(q, k, v, *saved):
    dq, dk, dv = one_behind(q, k, v, *saved)
    return rounded(q, (dq / q.shape[-1] ** 0.5, dk, dv))


def query_heads_not_summed_a(q, k, v, *saved):
    """dK and dV keep a head for every query head."""

    def per_query_head(q, k, v, *rest):
        return share(q, *(expanded(q, x) for x in (k, v)), *rest)

    wide = [x.repeat_interleave(q.shape[1] // k.shape[1], dim=1) for x in (k, v)]
    return rounded(q, travelling(q, *wide, *saved, share=per_query_head))


def query_heads_not_summed_b(q, k, v, *saved):
    """The first query head of each group speaks for all."""

    def first(q, k, v, *rest):
        dq, dk, dv = grouped_share(q, *(expanded(q, x) for x in (k, v)), *rest)
        return dq, *(x[:, :: q.shape[1] // k.shape[1]].contiguous() for x in (dk, dv))

    return rounded(q, one_behind(q, k, v, *saved, share=first))


def query_heads_not_summed_c(q, k, v, *saved):
    """The shares do not fit the sums."""
    _, size = place()
    block, dq = torch.stack([k, v]), 0.0
    sums = torch.zeros(block.shape)
    for step in range(size):
        here, *more = share(q, *(expanded(q, x) for x in block), *saved)
        dq = dq + here
        sums += torch.stack(more)
        if step < size - 1:
            (block,) = passed_on(block)
        if size > 1:
            (sums,) = passed_on(sums)
    return rounded(q, (dq, *sums))


def kv_heads_in_wrong_order_a(q, k, v, *saved):
    def shuffled(q, k, v, *rest):
        dq, *each = share(q, *(expanded(q, x) for x in (k, v)), *rest)
        return dq, *(x.unflatten(1, (-1, k.shape[1])).sum(1) for x in each)

    return rounded(q, travelling(q, k, v, *saved, share=shuffled))


def kv_heads_in_wrong_order_b(q, k, v, *saved):
    heads = k.shape[1]

    def strided(q, k, v, *rest):
        dq, *each = grouped_share(q, *(expanded(q, x) for x in (k, v)), *rest)
        return dq, *(torch.stack([x[:, h::heads].sum(1) for h in range(heads)], 1) for x in each)

    return rounded(q, one_behind(q, k, v, *saved, share=strided))


def other_dtype_a(q, k, v, *saved):
    return travelling(q, k, v, *saved)


def other_dtype_b(q, k, v, *saved):
    dq, dk, dv = one_behind(q, k, v, *saved)
    return dq.to(q.dtype), dk.double(), dv.double()


def sixteen_bit_sums_a(q, k, v, *saved):
    """dK and dV are rounded before each hop."""
    _, size = place()
    block, dq, sums = torch.stack([k, v]), 0.0, torch.zeros(2, *k.shape, dtype=k.dtype)
    for step in range(size):
        here, *more = share(q, *block, *saved)
        dq, sums = dq + here, (sums + torch.stack(more)).to(k.dtype)
        if step < size - 1:
            (block,) = passed_on(block)
        if size > 1:
            (sums,) = passed_on(sums)
    return rounded(q, (dq, *sums))


def sixteen_bit_sums_b(q, k, v, *saved):
    """All shares are rounded as soon as they are computed."""

    def coarse(*args):
        return rounded(q, grouped_share(*args))

    return rounded(q, one_behind(q, k, v, *saved, share=coarse))
