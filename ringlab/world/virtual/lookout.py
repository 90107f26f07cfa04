"""When to look thoroughly for ranks that can never go on."""

from __future__ import annotations

from collections.abc import Callable

from ringlab.world.virtual.waiting import DEPTH, WaitGraph


class Lookout:
    """Asks who is stuck each time a rank blocks or returns, at a cost that does not grow with W.

    In a world of up to ``DEPTH`` ranks the answer is always there at once. In a larger one, a
    chain of waiting ranks that is too long for the quick look leaves a doubt: the thorough look
    comes when as many ranks more have blocked as there are, or when nobody can run, whichever is
    first. A rank that is stuck stays stuck, so nothing is missed.

    Parameters
    ----------
    size : int
        Number of ranks.
    """

    def __init__(self, size: int) -> None:
        self._patience = size if size > DEPTH else 0
        self._left = 0
        """How many more times to wait while there is a doubt; 0 while there is none."""

    def stuck(self, graph: WaitGraph, changed: int, somebody_runs: Callable[[], bool]) -> set[int]:
        """The ranks that are known to be stuck, now that `changed` has blocked or returned.

        Parameters
        ----------
        graph : WaitGraph
        changed : int
        somebody_runs : callable
            Says whether any rank can take the turn.
        """
        if not self._left:
            if graph.clears(changed):
                return set()
            self._left = self._patience
        else:
            self._left -= 1
        if self._left and somebody_runs():
            return set()
        self._left = 0
        return graph.stuck()
