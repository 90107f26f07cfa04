"""What the exercises with messages share: a tensor on each rank, both orders, the traffic."""

from __future__ import annotations

from functools import lru_cache
from typing import Any, Literal

import torch
from torch import Tensor

from ringlab.draw import Picture, bytes_text, draw_traffic
from ringlab.grade.case import Case
from ringlab.grade.exercise import Outcome
from ringlab.grade.looks import collective_names
from ringlab.grade.observation import Observation
from ringlab.grade.observe import on_ranks

ROWS = 2


@lru_cache(maxsize=64)
def wide(case: Case) -> list[Tensor]:
    """What the tensor of each rank is a slice of: [2, columns + gaps], whole numbers in float32."""
    draw = torch.Generator().manual_seed(case.seed)
    shape = case.world_size, ROWS, case.integer("columns") + case.integer("gaps", 0)
    return list(torch.randint(-50, 50, shape, generator=draw).float())


def given(case: Case) -> list[Tensor]:
    """The tensor of each rank, [2, columns]."""
    return [tensor[:, : case.integer("columns")] for tensor in wide(case)]


def message_bytes(case: Case) -> int:
    """Bytes of the numbers in one of the tensors."""
    return ROWS * case.integer("columns") * 4


def order(case: Case) -> Literal["stream", "host"]:
    """Whose rules hold: NCCL's ("stream") or gloo's ("host")."""
    return "host" if case.text("order", "stream") == "host" else "stream"


def observe(answer: Any, case: Case) -> Observation:
    """Call ``answer(mine)`` on every rank with its tensor, a view of a larger one."""
    columns = case.integer("columns")
    return on_ranks(
        lambda tensor: answer(tensor[:, :columns]),
        [(tensor,) for tensor in wide(case)],
        order=order(case),
    )


def traffic(seen: Observation, wanted: dict[tuple[int, int], int], words: str) -> Outcome:
    """Whether just these bytes went from rank to rank, in messages."""
    got, ranks = seen.timeline.edges(), range(seen.timeline.world_size)
    collectives = {name for rank in ranks for name in collective_names(seen.timeline, rank)}
    if got == wanted and not collectives:
        return Outcome(True, words, words)
    edges = sorted(set(got) | set(wanted))
    differ = (e for e in edges if got.get(e, 0) != wanted.get(e, 0))
    parts = [f"{bytes_text(got.get((a, b), 0))} from rank {a} to {b}" for a, b in differ]
    return Outcome(False, words, ", ".join([*parts, *sorted(collectives)]))


def case(title: str, world_size: int, seed: int, **options: int | str) -> Case:
    """A case of this family: ``columns``, ``gaps`` (columns left out), ``order``."""
    return Case(title, world_size, seed, options)


def draw(seen: Observation) -> Picture | None:
    """Who sent how much to whom."""
    return draw_traffic(seen.timeline) if any(e.bytes_out for e in seen.timeline) else None
