"""The rules and the detector against a judge that plays every interleaving."""

from __future__ import annotations

import random

import pytest
import torch
import torch.distributed as dist

from ringlab.world import World
from ringlab.world.errors import RankFailed, WorldError
from ringlab.world.virtual import run as run_module
from tests.world_virtual.explorer import GROUPS, Judge, Op, State, members
from tests.world_virtual.verdicts import ORDERS

PROGRAMS = 80
counters: dict[int, int] = {}
groups: dict[tuple[int, str], object] = {}


def play(script):
    """Run a script; return what each receive got."""
    rank, size = dist.get_rank(), dist.get_world_size()
    for name in GROUPS:
        groups[rank, name] = dist.new_group(members(name, size))
    counters[rank] = 0
    works, got, done = {}, {}, set()
    for what, arg in script[rank]:
        counters[rank] += 1
        if what == "wait":
            works[arg].wait()
            done.add(arg)
        else:
            post(rank, arg, works, got)
    return {name: buffer[0].item() for name, buffer in got.items() if name in done}


def post(rank, ops, works, got):
    buffers = {op.name: torch.full((1,), code(rank, op.name)) for op in ops}
    got.update({op.name: buffers[op.name] for op in ops if op.kind == "recv"})
    if ops[0].kind == "all":
        (op,) = ops
        works[op.name] = dist.all_reduce(
            buffers[op.name], group=groups[rank, op.group], async_op=True
        )
    elif len(ops) == 1:
        (op,) = ops
        call = dist.isend if op.kind == "send" else dist.irecv
        works[op.name] = call(buffers[op.name], op.peer, group=groups[rank, op.group], tag=op.tag)
    else:
        batch = [
            dist.P2POp(
                dist.isend if op.kind == "send" else dist.irecv,
                buffers[op.name],
                op.peer,
                group=groups[rank, op.group],
                tag=op.tag,
            )
            for op in ops
        ]
        works.update(zip((op.name for op in ops), dist.batch_isend_irecv(batch), strict=True))


def code(rank, name):
    return 100.0 * rank + int(name[1:])


def random_script(dice, size, order):
    """A program that is often wrong: matched pairs are dealt out, then shuffled and spoilt."""
    todo = {rank: [] for rank in range(size)}
    numbers = iter(range(100))
    for _ in range(dice.randint(1, 4)):
        group = dice.choice([g for g in GROUPS if len(members(g, size)) > 1])
        inside = members(group, size)
        if dice.random() < 0.25:
            for rank in inside:
                todo[rank].append(Op(f"o{next(numbers)}", "all", -1, 0, group))
            continue
        one, two = dice.sample(inside, 2)
        tag = dice.randint(0, 1)
        todo[one].append(Op(f"o{next(numbers)}", "send", two, tag, group))
        if dice.random() < 0.9:
            other_tag = tag if dice.random() < 0.9 else 1 - tag
            todo[two].append(Op(f"o{next(numbers)}", "recv", one, other_tag, group))
    return tuple(tuple(instructions(dice, todo[rank])) for rank in range(size))


def instructions(dice, ops):
    if dice.random() < 0.5:
        dice.shuffle(ops)
    posted, program = [], []
    care = dice.choice((1.0, 1.0, 0.5))
    while ops or posted:
        if ops and (not posted or dice.random() < 0.6):
            together = [ops.pop(0)]
            while (ops and dice.random() < 0.4 and "all" not in (ops[0].kind, together[0].kind)
                   and ops[0].group == together[0].group):  # fmt: skip
                together.append(ops.pop(0))
            program.append(("post", tuple(together)))
            posted += [op.name for op in together]
        else:
            name = posted.pop(dice.randrange(len(posted)))
            if dice.random() < care:
                program.append(("wait", name))
    return program


def waited(script):
    return {(r, arg) for r, program in enumerate(script) for what, arg in program if what == "wait"}


def posted(script):
    return {(r, op.name) for r, program in enumerate(script)
            for what, arg in program if what == "post" for op in arg}  # fmt: skip


def expected_verdict(judge, script):
    """What the only outcome of a program amounts to, and that outcome."""
    (final,) = judge.outcomes()
    if any(final.counters[r] < len(script[r]) for r in range(len(script))):
        return {"Deadlock", "PeerLeft"}, final
    if posted(script) - final.matched:
        return {"UnmatchedOperation"}, final
    return ({"UnwaitedHandle"} if posted(script) - waited(script) else {"ok"}), final


class Watcher:
    """Compares each look for stuck ranks with what the judge finds at that moment."""

    def __init__(self, monkeypatch, judge, script):
        self.judge, self.script, self.looks = judge, script, 0
        examine = run_module.Run._examine

        def watched(run, rank):
            error = examine(run, rank)
            if len(counters) == len(script):  # every rank has made its groups
                self.compare(run, error)
            return error

        monkeypatch.setattr(run_module.Run, "_examine", watched)

    def compare(self, run, error):
        self.looks += 1
        returned = set(run.scheduler.returned)
        waiting = {rank: self.script[rank][counters[rank] - 1][1] for rank in run.waiting}
        state = State(tuple(counters[r] for r in range(len(self.script))), frozenset(), frozenset())
        doomed = self.judge.doomed(self.judge.settle(state), waiting, returned)
        assert bool(doomed) == (error is not None), (doomed, error, self.script)
        if error is not None:
            assert any(f"  rank {rank} waits for rank" in str(error) for rank in doomed)


def play_in_a_world(script, order):
    try:
        return "ok", World(len(script), order=order).run(play, script)
    except RankFailed:
        raise
    except WorldError as error:
        return type(error).__name__, None


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("size", [2, 3, 4])
def test_random_programs_end_as_the_judge_says_and_are_stopped_at_the_first_moment(
    order, size, monkeypatch
):
    dice = random.Random(f"{order}{size}")
    seen = {}
    for _ in range(PROGRAMS):
        script = random_script(dice, size, order)
        judge = Judge(script, order)
        verdicts, final = expected_verdict(judge, script)
        counters.clear()
        with monkeypatch.context() as patch:
            watcher = Watcher(patch, judge, script)
            said, got = play_in_a_world(script, order)
        assert said in verdicts, (said, verdicts, script)
        seen[said] = seen.get(said, 0) + 1
        if said == "ok":
            assert watcher.looks > 0
            for (sender, send), (receiver, recv) in final.pairs:
                assert got[receiver][recv] == code(sender, send), script
    assert min(seen.get(kind, 0) for kind in ("ok", "Deadlock", "PeerLeft")) >= 3, seen
