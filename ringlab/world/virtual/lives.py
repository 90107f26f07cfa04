"""One call of a function on every rank, from the first turn to what is left at the end."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

from ringlab.world.virtual import reports, tables
from ringlab.world.virtual.arguments import private_copy
from ringlab.world.virtual.collector import seldom
from ringlab.world.virtual.crew import Crew, Life, TurnExpired
from ringlab.world.virtual.run import Run

_current: dict[int, Run] = {}  # thread identity -> the run it is a rank of


def current_run() -> Run | None:
    """The run that the calling thread is a rank of."""
    return _current.get(threading.get_ident())


def execute(
    run: Run, fn: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> list[Any]:
    """Run ``fn`` on every rank; results in rank order."""

    def body(rank: int) -> Any:
        _current[threading.get_ident()] = run
        run.begins(rank)
        own_args, own_kwargs = private_copy((args, kwargs))
        run.observes(rank)
        return reports.not_lazy(fn(*own_args, **own_kwargs))

    def leave(rank: int) -> None:
        run.leaves()
        _current.pop(threading.get_ident(), None)

    def failed(rank: int, error: BaseException) -> Exception:
        return reports.rank_failed(rank, error, run.scheduler.ranks)

    tables.enter()
    try:
        with seldom(run.size):
            results = Crew(run.scheduler, Life(body, leave, failed), run.timeout).run()
        run.check()
        return results
    except TurnExpired as expired:
        raise reports.turn_expired(expired, run.timeout) from None
    finally:
        run.over = True
        tables.leave()
        run.let_go()
