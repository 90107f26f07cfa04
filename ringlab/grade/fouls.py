"""What no answer may do to the process that observes it; it then earns nothing."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from torch import Tensor

from ringlab.grade.numbers import close
from ringlab.grade.observation import Failure, Observation

REPLACED = "Replaced"
"""It put functions of its own in the place of torch's, Python's or this package's."""
REFUSED = "Refused"
"""It asked for what only reading the grader's memory is good for."""
BESIDE = "Beside"
"""Its results do not depend on its messages."""

KINDS = (REPLACED, REFUSED, BESIDE)


def foul(seen: Sequence[Observation]) -> Failure | None:
    """The first failure of an answer that is no mistake, but a foul."""
    failures = (observation.failure for observation in seen)
    return next((f for f in failures if f is not None and f.kind in KINDS), None)


def beside_messages(usual: Observation, altered: Observation) -> Failure | None:
    """Whether an answer got its right results on another way than by its messages.

    Parameters
    ----------
    usual, altered : Observation
        Of the same case; in the second the numbers of every message were altered on their way.

    Notes
    -----
    Only the ranks tell that received numbers and returned some: of ragged shards, a rank without
    queries receives blocks and has no use for them.
    """
    if usual.failure is not None or altered.failure is not None:
        return None
    received = {e.rank for e in usual.timeline if e.bytes_in and "float" in e.dtype}
    telling = [rank for rank in sorted(received) if _has_floats(usual.results[rank])]
    if not telling or not all(close(altered.results[r], usual.results[r]) for r in telling):
        return None
    return Failure(
        BESIDE,
        "its results stay the same whatever its messages carry: what a rank knows of the others "
        "must arrive in its messages. Ranks share no variable.",
    )


def _has_floats(value: Any) -> bool:
    if isinstance(value, Tensor):
        return value.is_floating_point() and value.numel() > 0
    if isinstance(value, dict):
        return any(map(_has_floats, value.values()))
    return isinstance(value, (list, tuple)) and any(map(_has_floats, value))
