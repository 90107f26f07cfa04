"""One run: waits for every rank's answer and decides how the run ends."""

from __future__ import annotations

import time

from ringlab.world.errors import WorldError
from ringlab.world.processes import report
from ringlab.world.processes.generation import Generation
from ringlab.world.processes.handle import Rank
from ringlab.world.processes.messages import Failed
from ringlab.world.processes.output import Relay

START_SECONDS = 120.0
"""How long ranks may take to start: importing torch from a slow disk can take a minute."""

GUILTY_GRACE = 0.1
"""After a rank's own error: time for an earlier one of another rank to arrive."""

CONSEQUENCE_GRACE = 1.0
"""After an error that only says that a peer is gone: time for the cause to arrive."""


def wait_until_ready(generation: Generation, relay: Relay) -> None:
    """Wait until every rank has joined the process group.

    Raises
    ------
    RankFailed, HungRank, WorldError
        If the ranks do not come up.
    """
    ranks = generation.ranks
    deadline = time.monotonic() + START_SECONDS
    while not all(rank.ready for rank in ranks):
        generation.pump(deadline - time.monotonic(), relay)
        if any(rank.lost for rank in ranks):
            raise WorldError(generation.launcher.epitaph())
        if any(_has_failed(rank) for rank in ranks):
            _settle(generation, relay)
        if time.monotonic() > deadline:
            generation.ask(relay)
            raise report.hung(ranks, START_SECONDS)


def wait_for_answers(generation: Generation, relay: Relay, timeout: float) -> None:
    """Wait until every rank has returned.

    Raises
    ------
    RankFailed
        If one raised or died; the others are then not waited for.
    HungRank
        If the deadline passes.
    RunInterrupted
        If the user interrupts.
    """
    ranks = generation.ranks
    deadline = time.monotonic() + timeout
    try:
        while any(rank.busy for rank in ranks):
            generation.pump(deadline - time.monotonic(), relay)
            if any(_has_failed(rank) for rank in ranks):
                break
            if time.monotonic() > deadline and any(rank.busy for rank in ranks):
                generation.ask(relay)
                raise report.hung(ranks, timeout)
        if any(_has_failed(rank) for rank in ranks):
            _settle(generation, relay)
    except KeyboardInterrupt:
        generation.ask(relay)
        raise report.interrupted(ranks) from None


def _has_failed(rank: Rank) -> bool:
    return rank.gone or isinstance(rank.reply, Failed)


def _settle(generation: Generation, relay: Relay) -> None:
    """After the first sign of failure: find out which rank began it, and raise its error.

    When a rank fails or dies, the others soon fail too because it no longer answers, and
    their errors may arrive first.
    """
    ranks = generation.ranks
    started = time.monotonic()
    while any(rank.busy for rank in ranks):
        grace = GUILTY_GRACE if any(map(_is_cause, ranks)) else CONSEQUENCE_GRACE
        left = started + grace - time.monotonic()
        if left <= 0:
            break
        generation.pump(left, relay)
    generation.ask(relay)
    raise report.failed(_guilty(ranks), ranks)


def _is_cause(rank: Rank) -> bool:
    """Whether a rank died, or raised something else than that a peer is gone."""
    return rank.gone or (isinstance(rank.reply, Failed) and not rank.reply.consequence)


def _guilty(ranks: list[Rank]) -> Rank:
    """The rank that failed first, mere consequences last."""

    def order(rank: Rank) -> tuple[bool, float]:
        if isinstance(rank.reply, Failed):
            return rank.reply.consequence, rank.reply.when
        return False, rank.ended_at

    return min((rank for rank in ranks if _has_failed(rank)), key=order)
