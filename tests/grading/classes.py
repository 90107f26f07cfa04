"""A class made up: right, blank, partly right, wrong, messy and hostile notebooks."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

from ringlab.grade.notebook.session import stub
from tests.grading.hostile import HOSTILE
from tests.grading.notebooks import answers, hand_in, solution

ANSWERED = ("rotation_table", "ring_forward", "ring_overlap")
MOST = {"rotation_table": 2, "ring_forward": 10, "ring_overlap": 8}

ALL_GATHER = """
def ring_forward(q, k, v):
    held = []
    for x in (k, v):
        parts = [torch.empty_like(x) for _ in range(dist.get_world_size())]
        dist.all_gather(parts, x.contiguous())
        held.append(torch.cat(parts, dim=2).float().repeat_interleave(q.shape[1] // k.shape[1], 1))
    scores = q.float() @ held[0].mT / q.shape[-1] ** 0.5
    return (scores.softmax(-1) @ held[1]).to(q.dtype)
"""
BACKWARDS = "def rotation_table(size):\n    return [[(r + t) % size for r in range(size)] " \
    "for t in range(size)]\n"  # fmt: skip


@dataclass(frozen=True)
class Pupil:
    """Somebody who hands in.

    Attributes
    ----------
    kind : str
    texts : dict of str to str
        Answers by exercise.
    points : dict of str to int
        What each earns.
    raw : bytes
        What is handed in instead of a notebook, if anything.
    """

    kind: str
    texts: dict[str, str]
    points: dict[str, int]
    raw: bytes = b""


def pupils() -> list[Pupil]:
    """One of each kind; the hostile ones first."""
    right = {name: solution(name) for name in ANSWERED}
    blank = {name: stub(name) for name in ANSWERED}
    one = {"rotation_table": 0, "ring_forward": 0, "ring_overlap": 8}
    hostile = [
        Pupil(f"hostile {name}", blank | {"rotation_table": HOSTILE[name].text,
                                          "ring_overlap": right["ring_overlap"]}, one)
        for name in ("os._exit(0)", "C loop", "fork bomb", "memory in pieces", "prints for ever")
    ]  # fmt: skip
    messy = right | {"rotation_table": f"%matplotlib inline\r\n{right['rotation_table']}\0"}
    return [
        *hostile,
        Pupil("right", right, MOST),
        Pupil("blank", blank, dict.fromkeys(ANSWERED, 0)),
        Pupil("partly", blank | {"ring_forward": ALL_GATHER}, one | {"ring_overlap": 0,
                                                                    "ring_forward": 5}),
        Pupil("wrong", right | {"rotation_table": BACKWARDS}, MOST | {"rotation_table": 0}),
        Pupil("messy", messy, MOST),
        Pupil("empty", {}, dict.fromkeys(ANSWERED, 0), raw=b""),
        Pupil("absent", {}, dict.fromkeys(ANSWERED, 0)),
    ]  # fmt: skip


def hand_in_class(folder: Path, size: int, hostile: int) -> dict[str, Pupil]:
    """Let a class of `size` hand in, some of them hostile; the students by name."""
    kinds = pupils()
    harmful = [pupil for pupil in kinds if pupil.kind.startswith("hostile")]
    harmless = [pupil for pupil in kinds if pupil not in harmful]
    chosen = [harmful[n % len(harmful)] for n in range(hostile)]
    chosen += [harmless[n % len(harmless)] for n in range(size - hostile)]
    handed = {f"{n:03} {pupil.kind}": pupil for n, pupil in enumerate(chosen)}
    for name, pupil in handed.items():
        if pupil.kind == "absent":
            (folder / name).mkdir(parents=True)
        elif pupil.kind == "empty":
            hand_in(folder, name, pupil.raw)
        else:
            hand_in(folder, name, json.dumps(answers(pupil.texts)).encode())
    return handed
