"""An observation: what an answer did in one case, as plain data."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

from ringlab.grade.plain import Plain, dump, load, plain
from ringlab.grade.records import timeline_from_text, timeline_text
from ringlab.timeline import Timeline

NOT_WRITTEN = "NotImplementedError"


@dataclass(frozen=True)
class Failure:
    """Why an answer did not come to its end.

    Attributes
    ----------
    kind : str
        ``"Deadlock"``, ``"PeerLeft"``, ``"UnmatchedOperation"``, ``"UnwaitedHandle"``,
        ``"MessageMismatch"``, ``"BufferHazard"``, ``"HungRank"`` as in `ringlab.world`;
        ``"TooLong"`` if the whole run met its deadline; or the name of the exception that the
        answer raised, as in ``"ValueError"``.
    message : str
        The whole report, with lines of the answer.
    rank : int or None
        The rank that raised.
    cycle : tuple of int
        Of a deadlock: the ranks that wait for one another.
    waits : tuple
        Of a deadlock or of a rank that left: ``(rank, other, operation, site)`` each.
    """

    kind: str
    message: str
    rank: int | None = None
    cycle: tuple[int, ...] = ()
    waits: tuple[tuple[int, int, str, str], ...] = ()

    @property
    def hung(self) -> bool:
        """Whether the answer was stopped by a deadline."""
        return self.kind in ("HungRank", "TooLong")

    @property
    def not_written(self) -> bool:
        """Whether the answer is still the stub."""
        return self.kind == NOT_WRITTEN


@dataclass(frozen=True)
class Observation:
    """What came of an answer in one case.

    Attributes
    ----------
    results : tuple of Plain
        What the answer returned, one entry a rank; empty if it failed. Where the case has
        groups, a rank outside of them has None.
    timeline : Timeline
        What the ranks computed, sent and waited for; of a failed run up to the failure.
    failure : Failure or None
    changed : tuple of str
        Arguments that the answer changed in place, as in ``"argument 1 on rank 0"``.
    peaks : tuple of int
        Bytes of the tensors made by the answer that were alive together, one entry a rank.
    """

    results: tuple[Plain, ...]
    timeline: Timeline
    failure: Failure | None = None
    changed: tuple[str, ...] = ()
    peaks: tuple[int, ...] = ()

    def to_bytes(self) -> bytes:
        """Write the observation without pickle: a JSON header and the bytes of the tensors."""
        failure = self.failure
        told: dict[str | int, Plain] = {
            "results": self.results,
            "timeline": timeline_text(self.timeline),
            "failure": plain(None if failure is None else vars(failure)),
            "changed": self.changed,
            "peaks": self.peaks,
        }
        return dump(told)

    @classmethod
    def from_bytes(cls, data: bytes) -> Observation:
        """Read what `to_bytes` wrote.

        Every part is checked for its exact type, so bytes that come out of a learner's process
        give an honest observation of plain data, or an error.

        Raises
        ------
        ValueError
            If the bytes hold anything else.
        """
        found = load(data)
        if not isinstance(found, dict) or set(found) != {f.name for f in fields(cls)}:
            raise ValueError("these bytes hold no observation.")
        return cls(
            _items(found["results"], object),
            timeline_from_text(found["timeline"]),
            _failure(found["failure"]),
            _items(found["changed"], str),
            _items(found["peaks"], int),
        )


def _items(value: Any, kind: type) -> tuple[Any, ...]:
    if type(value) is not tuple or any(kind is not object and type(v) is not kind for v in value):
        raise ValueError(f"a part of an observation is not a tuple of {kind.__name__}.")
    return value


def _failure(value: Any) -> Failure | None:
    if value is None:
        return None
    if type(value) is not dict or set(value) != {f.name for f in fields(Failure)}:
        raise ValueError("the failure of an observation has other fields.")
    waits = _items(value["waits"], tuple)
    if any(tuple(map(type, wait)) != (int, int, str, str) for wait in waits):
        raise ValueError("the waits of an observation are none.")
    if type(value["kind"]) is not str or type(value["message"]) is not str:
        raise ValueError("the failure of an observation has no words.")
    if value["rank"] is not None and type(value["rank"]) is not int:
        raise ValueError("the rank of a failure is no integer.")
    return Failure(
        value["kind"], value["message"], value["rank"], _items(value["cycle"], int), waits
    )
