"""An independent judge of small programs: plays every interleaving, rank by rank.

A script is, for each rank, a tuple of instructions:

* ``("post", ops)``: hand over operations at once, a batch if there are several. An operation
  is ``(name, kind, peer, tag, group)`` with kind ``"send"``, ``"recv"`` or ``"all"``, which is
  a collective of the group;
* ``("wait", name)``: wait for one of them.

A receive with the peer `ANY` takes a message from whoever sends; then several outcomes are
possible, and all are found.

Nothing here is shared with the library. A state is a plain tuple, and the rules are those
of the backends: under ``stream`` what a rank hands to a group stands in one line, of which
only the first unfinished entry may match, and an entry is done as a whole; under ``host``
every operation is free and tags matter.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any, NamedTuple

ANY = -2
"""Peer of a receive that takes a message from any rank."""

GROUPS = {"w": (0, 1, 2, 3), "a": (0, 1), "b": (1, 2, 3)}


class Op(NamedTuple):
    name: str
    kind: str
    peer: int
    tag: int
    group: str


class State(NamedTuple):
    counters: tuple[int, ...]  # next instruction of each rank
    matched: frozenset[tuple[int, str]]  # (rank, name of operation)
    pairs: frozenset[tuple[tuple[int, str], tuple[int, str]]]  # who received from whom


def members(group: str, size: int) -> tuple[int, ...]:
    return tuple(rank for rank in GROUPS[group] if rank < size)


class Judge:
    def __init__(self, script: tuple[tuple[Any, ...], ...], order: str) -> None:
        self.script, self.order, self.size = script, order, len(script)

    def outcomes(self) -> set[State]:
        """Every state in which nothing can move, over all interleavings."""
        start = State((0,) * self.size, frozenset(), frozenset())
        seen, stack, final = {start}, [start], set()
        while stack:
            state = stack.pop()
            successors = list(self.moves(state))
            if not successors:
                final.add(state)
            for successor in successors:
                if successor not in seen:
                    seen.add(successor)
                    stack.append(successor)
        return final

    def moves(self, state: State) -> Iterator[State]:
        for rank, counter in enumerate(state.counters):
            if counter == len(self.script[rank]):
                continue
            what, arg = self.script[rank][counter]
            if what == "wait" and not self.is_done(state, rank, arg):
                continue
            counters = list(state.counters)
            counters[rank] += 1
            yield state._replace(counters=tuple(counters))
        yield from self.matches(state)

    def matches(self, state: State) -> Iterator[State]:
        free = [(rank, op) for rank in range(self.size) for op in self.active(state, rank)]
        for (sender, send), (receiver, recv) in itertools.product(free, free):
            kinds = send.kind, recv.kind
            if kinds != ("send", "recv") or not self.fit(sender, send, receiver, recv):
                continue
            if self.first(state, sender, send) and self.first(state, receiver, recv, sender):
                ends = (sender, send.name), (receiver, recv.name)
                yield state._replace(matched=state.matched | set(ends), pairs=state.pairs | {ends})
        for group in GROUPS:
            parts = [next(((r, op.name) for op in self.active(state, r)
                           if op.kind == "all" and op.group == group
                           and self.first(state, r, op)), None)
                     for r in members(group, self.size)]  # fmt: skip
            if parts and None not in parts:
                yield state._replace(matched=state.matched | set(parts))

    def fit(self, sender: int, send: Op, receiver: int, recv: Op) -> bool:
        tags = self.order == "stream" or send.tag == recv.tag
        meet = send.peer == receiver and recv.peer in (sender, ANY)
        return meet and send.group == recv.group and tags

    def posted(self, state: State, rank: int) -> list[tuple[Op, ...]]:
        entries = self.script[rank][: state.counters[rank]]
        return [ops for what, ops in entries if what == "post"]

    def active(self, state: State, rank: int) -> list[Op]:
        found, blocked = [], set()
        for ops in self.posted(state, rank):
            waiting = [op for op in ops if (rank, op.name) not in state.matched]
            if self.order == "host" or ops[0].group not in blocked:
                found += waiting
            if waiting:
                blocked.add(ops[0].group)
        return found

    def first(self, state: State, rank: int, op: Op, partner: int | None = None) -> bool:
        """Whether no earlier operation of the same kind could take the same partner."""
        peers = {op.peer} if partner is None else {partner, ANY}
        for other in itertools.chain(*self.posted(state, rank)):
            if other.name == op.name:
                return True
            alike = (other.kind, other.group) == (op.kind, op.group) and other.peer in peers
            same_tag = self.order == "stream" or op.kind == "all" or other.tag == op.tag
            if alike and same_tag and (rank, other.name) not in state.matched:
                return False
        raise AssertionError("not posted")

    def is_done(self, state: State, rank: int, name: str) -> bool:
        for ops in self.posted(state, rank):
            if any(op.name == name for op in ops):
                needed = ops if self.order == "stream" else [op for op in ops if op.name == name]
                return all((rank, op.name) in state.matched for op in needed)
        raise AssertionError("waits for what it has not posted")

    # ---- what can still happen, whatever the ranks that run may do -----------------------

    def doomed(self, state: State, waiting: dict[int, str], returned: set[int]) -> set[int]:
        """The ranks of `waiting` that no behaviour of the others can set free."""
        waiting = dict(waiting)
        free = set(range(self.size)) - set(waiting) - returned
        while True:
            state = self.settle(state)
            awake = {r for r, name in waiting.items() if self.is_done(state, r, name)}
            if awake:
                free |= awake
                for rank in awake:
                    del waiting[rank]
                continue
            gift = next(self.gifts(state, free), None)
            if gift is None:
                return set(waiting)
            state = state._replace(matched=state.matched | gift)

    def settle(self, state: State) -> State:
        while True:
            successor = next(self.matches(state), None)
            if successor is None:
                return state
            state = successor

    def gifts(self, state: State, free: set[int]) -> Iterator[frozenset[tuple[int, str]]]:
        """Operations that could be matched by one that a free rank posts now."""
        for rank in range(self.size):
            for op in self.active(state, rank):
                if not self.first(state, rank, op):
                    continue
                if op.kind == "all":
                    arrived, missing = self.meeting(state, op)
                    if missing and all(self.could(state, r, op.group, free) for r in missing):
                        yield frozenset(arrived)
                elif self.could(state, op.peer, op.group, free) and not self.posts(
                    state, op.peer, rank, op
                ):
                    yield frozenset({(rank, op.name)})

    def could(self, state: State, rank: int, group: str, free: set[int]) -> bool:
        """Whether a rank could post something to a group that is active at once."""
        if rank not in free:
            return False
        lines = [ops for ops in self.posted(state, rank) if ops[0].group == group]
        left = [op for ops in lines for op in ops if (rank, op.name) not in state.matched]
        return self.order == "host" or not left

    def posts(self, state: State, rank: int, peer: int, op: Op) -> bool:
        """Whether a rank has posted an unmatched other end of an operation of `peer`."""
        kind = {"send": "recv", "recv": "send"}[op.kind]
        return any(
            (o.kind, o.peer, o.group) == (kind, peer, op.group)
            and (self.order == "stream" or o.tag == op.tag)
            and (rank, o.name) not in state.matched
            for o in itertools.chain(*self.posted(state, rank))
        )

    def meeting(self, state: State, op: Op) -> tuple[set[tuple[int, str]], list[int]]:
        arrived, missing = set(), []
        for rank in members(op.group, self.size):
            parts = [o for o in itertools.chain(*self.posted(state, rank))
                     if o.kind == "all" and o.group == op.group
                     and (rank, o.name) not in state.matched]  # fmt: skip
            if not parts:
                missing.append(rank)
            elif parts[0] in self.active(state, rank):
                arrived.add((rank, parts[0].name))
            else:
                return set(), []  # posted behind something: it has to come by itself
        return arrived, missing
