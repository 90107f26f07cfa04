"""Attention block by block, right and wrong."""

from __future__ import annotations

import torch


def _blocks(k, v, block):
    for start in range(0, k.shape[2], block):
        stop = min(start + block, k.shape[2])
        yield k[:, :, start:stop].float(), v[:, :, start:stop].float()


def _run(q, blocks, scale):
    """Running maximum and sums over blocks."""
    m = torch.full((*q.shape[:3], 1), -torch.inf)
    total, acc = torch.zeros_like(m), torch.zeros(q.shape)
    for keys, values in blocks:
        s = (q.float() @ keys.mT) * scale
        top = torch.maximum(m, s.amax(-1, keepdim=True))
        p, f = torch.exp(s - top), torch.exp(m - top)
        total, acc, m = f * total + p.sum(-1, keepdim=True), f * acc + p @ values, top
    return (acc / total).to(q.dtype)


def _parts(q, k, v, block):
    """Out and LSE of each block alone."""
    for keys, values in _blocks(k, v, block):
        s = torch.matmul(q.float(), keys.transpose(-1, -2)) / q.shape[-1] ** 0.5
        yield s.softmax(-1) @ values, s.logsumexp(-1, keepdim=True)


def right_a(q, k, v, block):
    return _run(q, _blocks(k, v, block), q.shape[-1] ** -0.5)


def right_b(q, k, v, block):
    out, lse = torch.zeros(q.shape), torch.full((*q.shape[:3], 1), -torch.inf)
    for part, part_lse in _parts(q, k, v, block):
        both = torch.logaddexp(lse, part_lse)
        out, lse = (lse - both).exp() * out + (part_lse - both).exp() * part, both
    return out.type_as(q)


def whole_table_a(q, k, v, block):
    s = q.float() @ k.float().mT / q.shape[-1] ** 0.5
    return (s.softmax(-1) @ v.float()).to(q.dtype)


def whole_table_b(q, k, v, block):
    pieces = [q.float() @ keys.mT / q.shape[-1] ** 0.5 for keys, _ in _blocks(k, v, block)]
    m = torch.stack([piece.amax(-1) for piece in pieces]).amax(0)[..., None]
    total, acc = 0.0, 0.0
    for piece, (_, values) in zip(pieces, _blocks(k, v, block), strict=True):
        p = (piece - m).exp()
        total, acc = total + p.sum(-1, keepdim=True), acc + p @ values
    return (acc / total).to(q.dtype)


def no_maximum_a(q, k, v, block):
    total, acc = 0.0, 0.0
    for keys, values in _blocks(k, v, block):
        p = torch.exp(q.float() @ keys.mT / q.shape[-1] ** 0.5)
        total, acc = total + p.sum(-1, keepdim=True), acc + p @ values
    return (acc / total).to(q.dtype)


def no_maximum_b(q, k, v, block):
    out, weight = torch.zeros(q.shape), torch.zeros(*q.shape[:3], 1)
    for part, part_lse in _parts(q, k, v, block):
        out, weight = out + part * part_lse.exp(), weight + part_lse.exp()
    return out.div(weight).type_as(q)


def rest_dropped_a(q, k, v, block):
    m = torch.full((*q.shape[:3], 1), -torch.inf)
    total, acc = torch.zeros_like(m), torch.zeros(q.shape)
    for number in range(k.shape[2] // block):
        part = slice(number * block, (number + 1) * block)
        s = q.float() @ k[:, :, part].float().mT / q.shape[-1] ** 0.5
        top = torch.maximum(m, s.amax(-1, keepdim=True))
        p, f = torch.exp(s - top), torch.exp(m - top)
        total, acc, m = (
            f * total + p.sum(-1, keepdim=True),
            f * acc + p @ v[:, :, part].float(),
            top,
        )
    return (acc / total.clamp_min(1e-30)).to(q.dtype)


def rest_dropped_b(q, k, v, block):
    whole = k.shape[2] - k.shape[2] % block
    if whole == 0:
        return torch.zeros_like(q)
    return right_b(q, k[:, :, :whole], v[:, :, :whole], block)


def no_scale_a(q, k, v, block):
    return _run(q, _blocks(k, v, block), 1.0)


def no_scale_b(q, k, v, block):
    return right_b(q.double() * q.shape[-1] ** 0.5, k, v, block).to(q.dtype)


def scale_twice_a(q, k, v, block):
    return _run(q, _blocks(k, v, block), 1 / q.shape[-1])


def scale_twice_b(q, k, v, block):
    return right_b(q.float() / q.shape[-1] ** 0.5, k, v, block).to(q.dtype)


def mean_of_blocks_a(q, k, v, block):
    parts = [part for part, _ in _parts(q, k, v, block)]
    return (sum(parts) / len(parts)).to(q.dtype)


def mean_of_blocks_b(q, k, v, block):
    mean = torch.zeros(q.shape)
    for number, (part, _) in enumerate(_parts(q, k, v, block), 1):
        mean += (part - mean) / number
    return mean.to(q.dtype)


def sum_of_blocks_a(q, k, v, block):
    return sum(part for part, _ in _parts(q, k, v, block)).to(q.dtype)


def sum_of_blocks_b(q, k, v, block):
    total = torch.zeros(q.shape)
    for part, _ in _parts(q, k, v, block):
        total.add_(part)
    return total.type_as(q)
