"""The weights of a model tensor by tensor, as its checkpoint holds them, and as TP cuts them."""

from __future__ import annotations

import math
from collections.abc import Iterator

from ringlab.memory import Dense, Experts, GroupedQuery, Latent, Model

Shape = tuple[int, ...]
Cut = tuple[Shape, int | None]  # of a weight, and the dimension that ranks of TP cut; None: none


def weights(model: Model, layers: range) -> Iterator[Cut]:
    """The tensors of some layers; embedding and head belong to the ends."""
    hidden = model.hidden
    if layers.start == 0 or (model.tied and layers.stop == model.layers):
        yield new(model.vocabulary, hidden), 0
    for layer in layers:
        yield from (
            latent(model.attention, hidden)
            if isinstance(model.attention, Latent)
            else grouped(model.attention, hidden)
        )
        yield from feed_forward(model.feed_forward_of(layer), hidden)
        yield from [(new(hidden), None)] * 2
    if layers.stop == model.layers:
        yield new(hidden), None
        if not model.tied:
            yield new(model.vocabulary, hidden), 0


def grouped(shape: GroupedQuery, hidden: int) -> Iterator[Cut]:
    for heads in (shape.heads, shape.kv_heads, shape.kv_heads):
        yield new(heads, shape.head_dim, hidden), 0
        if shape.bias:
            yield new(heads, shape.head_dim), 0
    yield new(hidden, shape.heads, shape.head_dim), 1
    if shape.qk_norm:
        yield from [(new(shape.head_dim), None)] * 2


def latent(shape: Latent, hidden: int) -> Iterator[Cut]:
    yield new(shape.query_rank, hidden), None
    yield new(shape.query_rank), None
    yield new(shape.heads, shape.nope_dim + shape.rope_dim, shape.query_rank), 0
    yield new(shape.latent + shape.rope_dim, hidden), None
    yield new(shape.latent), None
    yield new(shape.heads, shape.nope_dim + shape.value_dim, shape.latent), 0
    yield new(hidden, shape.heads, shape.value_dim), 1


def feed_forward(shape: Dense | Experts, hidden: int) -> Iterator[Cut]:
    if isinstance(shape, Dense):
        yield from gated(shape.width, hidden)
        return
    yield new(shape.count, hidden), None
    if shape.router_bias:
        yield new(shape.count), None
    for _ in range(shape.count + shape.shared):
        yield from gated(shape.width, hidden)


def gated(width: int, hidden: int) -> Iterator[Cut]:
    yield from [(new(width, hidden), 0)] * 2
    yield new(hidden, width), 1


def new(*shape: int) -> Shape:
    return shape


def held(cuts: Iterator[Cut], rank: int, tp: int) -> int:
    """Elements of a rank's slices; a dimension shorter than `tp` gives each rank one entry."""
    total = 0
    for shape, dim in cuts:
        whole = math.prod(shape)
        if dim is None:
            total += whole
            continue
        size = shape[dim]
        first, last = rank * size // tp, (rank + 1) * size // tp
        total += whole // size * max(last - first, 1)
    return total
