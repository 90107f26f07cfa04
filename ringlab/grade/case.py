"""A case: what one trial of an answer is run with, as data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ringlab.grade.plain import Plain, plain


@dataclass(frozen=True, eq=False)
class Case:
    """One trial of an answer.

    Parameters
    ----------
    title : str
        In words, for the learner, as in ``"4 ranks, 12 tokens"``.
    world_size : int
        Number of ranks; 1 for a function that does not communicate.
    seed : int
        From which the exercise draws the inputs.
    options : mapping
        What else the exercise's family of cases has, plain data: lengths, heads, groups.
    hidden : bool
        Whether a learner may be shown nothing of it.
    """

    title: str
    world_size: int = 1
    seed: int = 0
    options: Mapping[str, Plain] = field(default_factory=dict)
    hidden: bool = False

    def integer(self, name: str, otherwise: int | None = None) -> int:
        """The option `name`, which is an integer."""
        value = self.options.get(name, otherwise)
        if type(value) is not int:
            raise TypeError(f"case {self.title!r}: option {name!r} is {value!r}, not an integer.")
        return value

    def text(self, name: str, otherwise: str) -> str:
        """The option `name`, which is a string."""
        value = self.options.get(name, otherwise)
        if type(value) is not str:
            raise TypeError(f"case {self.title!r}: option {name!r} is {value!r}, not a string.")
        return value

    def as_plain(self) -> Plain:
        """The case as plain data, from which `from_plain` makes an equal one."""
        return plain(
            {
                "title": self.title,
                "world_size": self.world_size,
                "seed": self.seed,
                "options": dict(self.options),
                "hidden": self.hidden,
            }
        )

    @classmethod
    def from_plain(cls, value: Any) -> Case:
        """Make a case of what `as_plain` gave, or of the same written by hand.

        Raises
        ------
        ValueError
            If something is missing, unknown or of another type.
        """
        kinds = {"title": str, "world_size": int, "seed": int, "options": dict, "hidden": bool}
        if not isinstance(value, dict) or not {"title"} <= set(value) <= set(kinds):
            raise ValueError(f"a case has a title, and may have {sorted(kinds)}; got {value!r}.")
        for name, entry in value.items():
            if type(entry) is not kinds[name]:
                raise ValueError(f"{name} of a case is {entry!r}; it must be {kinds[name]}.")
        if not 1 <= value.get("world_size", 1) <= 64:
            raise ValueError(f"a case has 1 to 64 ranks, not {value['world_size']}.")
        plain(value, "the case")
        return cls(**value)
