"""What a person reads when a run ends badly: one entry a rank, guilty rank first."""

from __future__ import annotations

import signal

from ringlab.world.errors import HungRank, RankFailed
from ringlab.world.processes import stacks
from ringlab.world.processes.handle import Rank
from ringlab.world.processes.messages import Failed, Returned


class RunInterrupted(KeyboardInterrupt):
    """The user interrupted a run; the message says where every rank stood."""

    def _render_traceback_(self) -> list[str]:
        return [f"KeyboardInterrupt: {self}"]


def failed(guilty: Rank, ranks: list[Rank]) -> RankFailed:
    """The error for a run in which `guilty` was the first to fail."""
    others = _entries([rank for rank in ranks if rank is not guilty])
    if others:
        others = "Meanwhile:\n" + others
    if isinstance(guilty.reply, Failed):
        return RankFailed(guilty.number, guilty.reply.summary, guilty.reply.traceback, others)
    where = "\n    ".join(_stood(guilty))
    trace = f"It stood at {where}" if where else ""
    return RankFailed(guilty.number, f"its process {epitaph(guilty)}", trace, others)


def hung(ranks: list[Rank], timeout: float) -> HungRank:
    """The error for a run that met its deadline."""
    late = [rank.number for rank in ranks if rank.busy]
    names = ", ".join(map(str, late))
    return HungRank(
        f"rank{'s' * (len(late) > 1)} {names} of {len(ranks)} had not returned after "
        f"{timeout:g} s, the deadline (timeout=...):\n{_entries(ranks)}"
    )


def interrupted(ranks: list[Rank]) -> RunInterrupted:
    """The error for a run that the user interrupted."""
    return RunInterrupted(f"the ranks were ended.\n{_entries(ranks)}")


def leftovers(ranks: list[Rank]) -> str:
    """A warning about what a successful run left unfinished, or an empty string."""
    lines = [
        f"  rank {rank.number}: {text}"
        for rank in ranks
        if isinstance(rank.reply, Returned)
        for text in rank.reply.leftovers
    ]
    if not lines:
        return ""
    return (
        "the program returned and left behind:\n" + "\n".join(lines) + "\nKeep what isend, irecv "
        "and async_op=True return and call wait() on each. A message that nobody received would "
        "be taken for the next one, so the next run starts on other ranks."
    )


def epitaph(rank: Rank) -> str:
    """How a process ended."""
    if rank.ended is None:
        return "was lost, and with it the process that starts ranks"
    if rank.ended >= 0:
        return f"ended with exit code {rank.ended}"
    try:
        name = signal.Signals(-rank.ended).name
    except ValueError:
        name = f"signal {-rank.ended}"
    hint = " (on Linux often: the memory was full)" if name == "SIGKILL" else ""
    return f"was killed by {name}{hint}"


def _entries(ranks: list[Rank]) -> str:
    return "\n".join(_entry(rank) for rank in ranks)


def _entry(rank: Rank) -> str:
    label = f"  rank {rank.number} "
    if isinstance(rank.reply, Returned):
        return label + "had returned"
    if isinstance(rank.reply, Failed):
        # the wording of a lost connection names ports, and differs from run to run
        lost = "lost its connection to another rank"
        return label + (lost if rank.reply.consequence else f"failed too: {rank.reply.summary}")
    if rank.gone:
        return label + epitaph(rank)
    operation = rank.standing.operation if rank.standing else ""
    first, *rest = _stood(rank) or [""]
    lines = [label + (f"stood at {first}" if first else "gave no sign"), *rest]
    if operation:
        lines.append(operation.replace(f"issued at {first}", "issued there"))
    return "\n    ".join(lines)


def _stood(rank: Rank) -> list[str]:
    """The lines at which a rank's threads stood: of the program first, of helpers after."""
    main, *others = stacks.parse(rank.stack.decode(errors="replace")) or [[]]
    lines = [f"in {site}" if depth else str(site) for depth, site in enumerate(stacks.place(main))]
    helpers = [site for stack in others if (site := stacks.own_line(stack))]
    return [*lines, *(f"another thread stood at {site}" for site in helpers)]
