"""Detectors of deadlocks, right and wrong."""

from __future__ import annotations


def parsed(programs):
    return [[(op.split()[0], int(op.split()[1])) for op in own] for own in programs]


def meets(front, rank):
    """Whether the rank's send meets the receive of its peer."""
    word, peer = front[rank]
    return word == "send" and front.get(peer) == ("recv", rank)


def run(programs):
    """Who waits for whom in the end."""
    left = parsed(programs)
    while True:
        front = {rank: own[0] for rank, own in enumerate(left) if own}
        sender = next((rank for rank in front if meets(front, rank)), None)
        if sender is None:
            return {rank: peer for rank, (_, peer) in front.items()}
        del left[sender][0], left[front[sender][1]][0]


def comes_back(waits, rank):
    at = waits.get(rank)
    for _ in waits:
        if at == rank:
            return True
        at = waits.get(at)
    return False


def circle_of(waits, rank):
    ranks, at = [rank], waits[rank]
    while at != rank:
        ranks.append(at)
        at = waits[at]
    return ranks


def rings(waits):
    """Each circle once, from its smallest rank."""
    inside = [rank for rank in sorted(waits) if comes_back(waits, rank)]
    each = [circle_of(waits, rank) for rank in inside]
    return [ranks for ranks in each if ranks[0] == min(ranks)]


def right_a(programs):
    waits = run(programs)
    return sorted(rank for rank in waits if comes_back(waits, rank))


def right_b(programs):
    """By counters, and by taking away everyone for whom nobody waits."""
    ops, at = parsed(programs), [0] * len(programs)

    def front(rank):
        return ops[rank][at[rank]] if at[rank] < len(ops[rank]) else None

    moved = True
    while moved:
        moved = False
        for rank in range(len(ops)):
            here = front(rank)
            if here and here[0] == "send" and front(here[1]) == ("recv", rank):
                at[rank] += 1
                at[here[1]] += 1
                moved = True
    waits = {rank: front(rank)[1] for rank in range(len(ops)) if front(rank)}
    while True:
        kept = {
            rank: other
            for rank, other in waits.items()
            if rank in waits.values() and other in waits
        }
        if kept == waits:
            return sorted(waits)
        waits = kept


def not_sorted_a(programs):
    return [rank for ring in rings(run(programs)) for rank in ring]


def not_sorted_b(programs):
    waits, found = run(programs), []
    for rank in waits:
        if comes_back(waits, rank):
            found += circle_of(waits, rank)
    return found


def looks_at_the_start_only_a(programs):
    waits = {rank: int(own[0].split()[1]) for rank, own in enumerate(programs) if own}
    return [rank for rank in sorted(waits) if comes_back(waits, rank)]


def looks_at_the_start_only_b(programs):
    front = {rank: own[0] for rank, own in enumerate(parsed(programs)) if own}
    met = [rank for rank in front if meets(front, rank)]
    met += [front[rank][1] for rank in met]
    waits = {rank: op[1] for rank, op in front.items() if rank not in met}
    return [rank for rank in sorted(waits) if comes_back(waits, rank)]


def two_sends_meet_a(programs):
    left = parsed(programs)
    moved = True
    while moved:
        moved = False
        for rank, own in enumerate(left):
            peer = own[0][1] if own else rank
            if peer != rank and left[peer] and left[peer][0][1] == rank:
                del own[0], left[peer][0]
                moved = True
    waits = {rank: own[0][1] for rank, own in enumerate(left) if own}
    return [rank for rank in sorted(waits) if comes_back(waits, rank)]


def two_sends_meet_b(programs):
    left = [[int(op.split()[1]) for op in own] for own in programs]
    for _ in range(sum(map(len, left))):
        heads = {rank: own[0] for rank, own in enumerate(left) if own}
        for rank, peer in heads.items():
            if rank < peer and heads.get(peer) == rank:
                left[rank].pop(0)
                left[peer].pop(0)
    waits = {rank: own[0] for rank, own in enumerate(left) if own}
    return sorted({rank for ring in rings(waits) for rank in ring})


def sends_are_over_at_once_a(programs):
    left, mail = parsed(programs), []
    moved = True
    while moved:
        moved = False
        for rank, own in enumerate(left):
            if own and own[0][0] == "send":
                mail.append((rank, own.pop(0)[1]))
                moved = True
            elif own and (own[0][1], rank) in mail:
                mail.remove((own.pop(0)[1], rank))
                moved = True
    waits = {rank: own[0][1] for rank, own in enumerate(left) if own}
    return [rank for rank in sorted(waits) if comes_back(waits, rank)]


def sends_are_over_at_once_b(programs):
    ops, at = parsed(programs), [0] * len(programs)
    size = len(ops)
    box = [[0] * size for _ in range(size)]
    for _ in range(sum(map(len, ops)) + 1):
        for rank in range(size):
            if at[rank] == len(ops[rank]):
                continue
            word, peer = ops[rank][at[rank]]
            if word == "send":
                box[rank][peer] += 1
                at[rank] += 1
            elif box[peer][rank]:
                box[peer][rank] -= 1
                at[rank] += 1
    waits = {r: ops[r][at[r]][1] for r in range(size) if at[r] < len(ops[r])}
    return sorted(rank for ring in rings(waits) for rank in ring)


def those_who_wait_for_the_circle_a(programs):
    waits, found = run(programs), []
    for rank in waits:
        at = rank
        for _ in range(len(programs)):
            at = waits.get(at)
        if at is not None:
            found.append(rank)
    return sorted(found)


def those_who_wait_for_the_circle_b(programs):
    waits = run(programs)
    while any(other not in waits for other in waits.values()):
        waits = {rank: other for rank, other in waits.items() if other in waits}
    return sorted(waits)


def whole_world_only_a(programs):
    waits = run(programs)
    return list(range(len(programs))) if len(waits) == len(programs) else []


def whole_world_only_b(programs):
    waits = run(programs)
    seen, at = [], 0
    while at in waits and at not in seen:
        seen.append(at)
        at = waits[at]
    return sorted(seen) if at == 0 and len(seen) == len(programs) else []


def all_who_are_stuck_a(programs):
    return sorted(run(programs))


def all_who_are_stuck_b(programs):
    waits = run(programs)
    return sorted(waits) if rings(waits) else []


def circles_of_two_only_a(programs):
    waits = run(programs)
    return [r for r in sorted(waits) if waits[r] != r and waits.get(waits[r]) == r]


def circles_of_two_only_b(programs):
    waits, found = run(programs), set()
    for rank, other in waits.items():
        for third, fourth in waits.items():
            if (third, fourth) == (other, rank) and rank != third:
                found |= {rank, third}
    return sorted(found)


def one_circle_only_a(programs):
    found = rings(run(programs))
    return sorted(found[0]) if found else []


def one_circle_only_b(programs):
    waits = run(programs)
    for rank in sorted(waits, reverse=True):
        if comes_back(waits, rank):
            return sorted(circle_of(waits, rank))
    return []


def itself_overlooked_a(programs):
    return sorted(rank for ring in rings(run(programs)) if len(ring) > 1 for rank in ring)


def itself_overlooked_b(programs):
    waits = {rank: other for rank, other in run(programs).items() if rank != other}
    return [rank for rank in sorted(waits) if comes_back(waits, rank)]
