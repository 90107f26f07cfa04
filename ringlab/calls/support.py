"""Features as data: what a call supports, what it refuses, and the errors that say so."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True)
class Feature:
    """One line of a table of support.

    Attributes
    ----------
    name : str
    status : {"supported", "refused"}
    note : str
        How it is supported, or what to use instead.
    arguments : tuple of str
        The names under which other libraries ask for a refused feature.
    """

    name: str
    status: Literal["supported", "refused"]
    note: str
    arguments: tuple[str, ...] = ()


@dataclass(frozen=True)
class Support:
    """A table of support, and the errors that name its rows.

    Parameters
    ----------
    features : sequence of Feature
    renamed : mapping of str to str
        What users of other libraries may write, and what it is called here.
    """

    features: Sequence[Feature]
    renamed: Mapping[str, str]

    def refused(self, feature: str, call: str, given: str = "") -> NotImplementedError:
        """Make the error that refuses a feature, named as in the table.

        Parameters
        ----------
        feature : str
            The name of a refused row.
        call : str
            The function that was called.
        given : str
            What was passed.
        """
        row = next(x for x in self.features if x.name == feature and x.status == "refused")
        what = f" ({given})" if given else ""
        return NotImplementedError(f"{call} does not support {row.name}{what}: {row.note}")

    def unknown_argument(self, call: str, name: str) -> Exception:
        """Make the error for an argument that a call does not have."""
        for row in self.features:
            if name in row.arguments:
                return self.refused(row.name, call, f"{name}=")
        hint = f" It is called {self.renamed[name]} here." if name in self.renamed else ""
        return TypeError(f"{call} has no argument {name!r}.{hint}")
