"""Lists of operations, one a rank: how to run them in a world, and how to put them to the judge.

An instruction is one of

* ``("send", peer, tag)``, ``("recv", peer, tag)``: blocking calls;
* ``("isend", peer, tag)``, ``("irecv", peer, tag)``, ``("start", group)``: a message or a
  collective that is begun;
* ``("batch", ops)``: a ``batch_isend_irecv`` of such ``isend`` and ``irecv``;
* ``("wait", n)``: wait for the n-th of the handles that are still open, modulo their number;
  nothing if there is none;
* ``("meet", group)``: a blocking collective, for the world a barrier.

The judge (`tests.world_virtual.explorer`) shares no code with the library.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
import torch.distributed as dist

from ringlab.world import World
from ringlab.world.errors import RankFailed, WorldError
from tests.world_virtual.explorer import ANY, GROUPS, Judge, Op, State, members

Instruction = tuple[Any, ...]
Lists = tuple[tuple[Instruction, ...], ...]

STUCK = {"Deadlock", "PeerLeft"}


# ---- for the judge -----------------------------------------------------------------------


def script_of(instructions: tuple[Instruction, ...]) -> tuple[Instruction, ...]:
    """One rank's list in the words of the judge, with a name for each operation."""
    script: list[Instruction] = []
    left: list[str] = []
    numbers = iter(range(100))
    for what, *rest in instructions:
        if what == "wait":
            if left:
                script.append(("wait", left.pop(rest[0] % len(left))))
            continue
        given = rest[0] if what == "batch" else [(what, *rest)]
        ops = tuple(_op(f"o{next(numbers)}", *each) for each in given)
        script.append(("post", ops))
        if what in ("send", "recv", "meet"):
            script.append(("wait", ops[0].name))
        else:
            left += [op.name for op in ops]
    return tuple(script)


def _op(name: str, what: str, where: Any, tag: int = 0) -> Op:
    if what in ("meet", "start"):
        return Op(name, "all", -1, 0, where)
    return Op(name, what.removeprefix("i"), where, tag, "w")


def expected(lists: Lists, order: str) -> tuple[set[str], set[State]]:
    """Every way in which a program may end, over all interleavings, and the final states."""
    scripts = tuple(map(script_of, lists))
    finals = Judge(scripts, order).outcomes()
    verdicts: set[str] = set()
    for final in finals:
        verdicts |= _verdicts(scripts, final)
    return verdicts, finals


def _verdicts(scripts: Lists, final: State) -> set[str]:
    if any(final.counters[r] < len(script) for r, script in enumerate(scripts)):
        return STUCK
    posted = {(r, op.name) for r, what, arg in _all(scripts) if what == "post" for op in arg}
    waited = {(r, arg) for r, what, arg in _all(scripts) if what == "wait"}
    if posted - final.matched:
        return {"UnmatchedOperation"}
    return {"UnwaitedHandle"} if posted - waited else {"ok"}


def _all(scripts: Lists) -> Iterator[tuple[int, str, Any]]:
    for rank, script in enumerate(scripts):
        for what, arg in script:
            yield rank, what, arg


# ---- in a world --------------------------------------------------------------------------


def said(lists: Lists, order: str) -> tuple[str, list[Any] | None]:
    """What the virtual world says about a program, and what the ranks return."""
    try:
        return "ok", World(len(lists), order=order).run(play, lists)
    except RankFailed:
        raise
    except WorldError as error:
        return type(error).__name__, None


def play(lists: Lists) -> dict[str, float]:
    """Run one's own list; what each message that was waited for held, by the judge's names."""
    rank, size = dist.get_rank(), dist.get_world_size()
    groups = {n: dist.new_group(members(n, size)) for n in sorted(GROUPS) if _uses(lists, n)}
    groups["w"] = dist.group.WORLD
    left: list[tuple[str, Any]] = []
    buffers: dict[str, torch.Tensor] = {}
    done: list[str] = []
    names = (f"o{number}" for number in range(100))
    for what, *rest in lists[rank]:
        if what == "wait":
            if left:
                name, work = left.pop(rest[0] % len(left))
                work.wait()
                done.append(name)
        elif what in ("meet", "start"):
            name = next(names)
            work = dist.barrier(group=groups[rest[0]], async_op=what == "start")
            left += [(name, work)] if what == "start" else []
        elif what == "batch":
            own = [next(names) for _ in rest[0]]
            calls = [_message(rank, *each) for each in zip(own, rest[0], strict=True)]
            works = dist.batch_isend_irecv(
                [dist.P2POp(call, *args, tag=tag) for call, args, tag in calls]
            )
            left += zip(own, works, strict=True)
            buffers |= {n: args[0] for n, (_, args, _) in zip(own, calls, strict=True)}
        else:
            name = next(names)
            call, args, tag = _message(rank, name, (what, *rest))
            buffers[name] = args[0]
            work = call(*args, tag=tag)
            if what[0] == "i":
                left.append((name, work))
            else:
                done.append(name)
    return {name: buffers[name].item() for name in done if name in buffers}


def _message(rank: int, name: str, instruction: Instruction) -> Any:
    what, peer, tag = instruction
    buffer = torch.tensor(code(rank, name))
    return getattr(dist, what), (buffer, None if peer == ANY else peer), tag


def _uses(lists: Lists, group: str) -> bool:
    return group != "w" and any(
        what in ("meet", "start") and rest[0] == group for one in lists for what, *rest in one
    )


def code(rank: int, name: str) -> float:
    """What an operation carries: no two alike."""
    return 100.0 * rank + int(name[1:])


# ---- both --------------------------------------------------------------------------------


def check(lists: Lists, order: str) -> str:
    """Compare what the world says with what the judge finds; return it.

    Which of several possible ends a program with receives from any rank comes to depends on who
    is first; the world's must be one of them.
    """
    verdicts, finals = expected(lists, order)
    verdict, got = said(lists, order)
    assert verdict in verdicts, (verdict, verdicts, lists, order)
    if got is not None:
        assert any(_fits(got, final) for final in finals), (got, finals, lists, order)
    return verdict


def _fits(got: list[Any], final: State) -> bool:
    return all(
        got[receiver][recv] == code(sender, send)
        for (sender, send), (receiver, recv) in final.pairs
    )
