"""Which method a situation calls for, decided step by step or from a list of candidates."""

from __future__ import annotations

from types import SimpleNamespace

NAMES = ["phase", "ranks", "tokens", "queries", "heads", "kv_heads", "head_dim", "itemsize", "room"]


def counted(given):
    """Bytes from one rank to one other."""
    it = SimpleNamespace(**dict(zip(NAMES, given, strict=True)))
    it.kv = 2 * it.tokens * it.kv_heads * it.head_dim * it.itemsize
    it.found = it.queries * it.heads * (it.head_dim + 1) * 4
    it.asked = it.queries * it.heads * it.head_dim * it.itemsize
    it.split = it.found + it.asked if it.phase == "prefill" else it.found
    it.copy = it.ranks * it.kv
    return it


def by_steps(it):
    if it.ranks == 1:
        return "none", 0
    if it.split <= it.kv:
        return "split_k", (it.ranks - 1) * it.split
    name = "all_gather" if it.copy <= it.room else "ring"
    return name, (it.ranks - 1) * it.kv


def by_list(it):
    """The cheapest of those that are possible; of equals the first."""
    candidates = [("none", 0)] if it.ranks == 1 else []
    candidates.append(("split_k", it.split * (it.ranks - 1)))
    if it.room >= it.copy:
        candidates.append(("all_gather", it.kv * (it.ranks - 1)))
    candidates.append(("ring", it.kv * (it.ranks - 1)))
    return min(candidates, key=lambda pair: pair[1])


def right_a(*given):
    return by_steps(counted(given))


def right_b(*given):
    return list(by_list(counted(given)))


def right_c(phase, ranks, tokens, queries, heads, kv_heads, head_dim, itemsize, room):
    """In numbers of itemsize bytes, the queries and results of one head."""
    if ranks < 2:
        return ("none", 0)
    per_query = (head_dim + 1) * 4 + (head_dim * itemsize if phase == "prefill" else 0)
    results, cache = per_query * queries * heads, head_dim * itemsize * tokens * 2 * kv_heads
    if results > cache:
        return ("ring" if cache * ranks > room else "all_gather", cache * (ranks - 1))
    return ("split_k", results * (ranks - 1))


def one_rank_forgotten_a(phase, ranks, tokens, queries, heads, kv_heads, head_dim, itemsize, room):
    cache = 2 * tokens * kv_heads * head_dim * itemsize
    results = queries * heads * ((head_dim + 1) * 4 + (phase == "prefill") * head_dim * itemsize)
    if results <= cache:
        return "split_k", (ranks - 1) * results
    return ("all_gather" if ranks * cache <= room else "ring"), (ranks - 1) * cache


def one_rank_forgotten_b(*given):
    it = counted(given)
    candidates = {"split_k": it.split, "all_gather": it.kv, "ring": it.kv}
    if it.copy > it.room:
        del candidates["all_gather"]
    name = min(candidates, key=candidates.get)
    return name, candidates[name] * (it.ranks - 1)


def at_a_tie_a(*given):
    it = counted(given)
    if it.ranks > 1 and it.split == it.kv:
        it.split += 1
    return by_steps(it)


def at_a_tie_b(*given):
    """Of equals the one that stands first, and results stand last."""
    it = counted(given)
    if it.ranks == 1:
        return "none", 0
    kv = ("all_gather" if it.copy <= it.room else "ring", it.kv * (it.ranks - 1))
    return min([kv, ("split_k", it.split * (it.ranks - 1))], key=lambda pair: pair[1])


def own_copy_forgotten_a(*given):
    it = counted(given)
    it.copy = (it.ranks - 1) * it.kv
    return by_steps(it)


def own_copy_forgotten_b(*given):
    it = counted(given)
    it.room += it.kv
    return by_list(it)


def room_for_one_block_a(*given):
    it = counted(given)
    it.copy = it.kv
    return by_steps(it)


def room_for_one_block_b(*given):
    it = counted(given)
    it.room *= it.ranks
    return by_list(it)


def room_ignored_a(*given):
    it = counted(given)
    if it.ranks == 1:
        return "none", 0
    sends = {"split_k": it.split, "all_gather": it.kv}
    name = min(sends, key=sends.get)
    return name, (it.ranks - 1) * sends[name]


def room_ignored_b(*given):
    name, sent = by_list(counted(given))
    return ("all_gather" if name == "ring" else name), sent


def never_gathers_a(*given):
    it = counted(given)
    if it.ranks == 1:
        return "none", 0
    sends = {"split_k": it.split, "ring": it.kv}
    name = min(sends, key=sends.get)
    return name, (it.ranks - 1) * sends[name]


def never_gathers_b(*given):
    it = counted(given)
    it.copy = it.room + 1
    return by_list(it)


def by_the_phase_alone_a(*given):
    it = counted(given)
    if it.ranks == 1:
        return "none", 0
    if it.phase == "decode":
        return "split_k", (it.ranks - 1) * it.found
    return ("all_gather" if it.copy <= it.room else "ring"), (it.ranks - 1) * it.kv


def by_the_phase_alone_b(phase, ranks, *rest):
    it = counted((phase, ranks, *rest))
    wanted = {"decode": ["none", "split_k"], "prefill": ["none", "all_gather", "ring"]}[phase]
    sends = {"none": 0, "split_k": it.found, "all_gather": it.kv, "ring": it.kv}
    possible = [n for n in wanted if (n != "none" or ranks == 1)]
    if it.copy > it.room:
        possible = [n for n in possible if n != "all_gather"]
    return possible[0], sends[possible[0]] * (ranks - 1)


def queries_forgotten_a(*given):
    it = counted(given)
    it.split = it.found
    return by_steps(it)


def queries_forgotten_b(phase, *rest):
    return by_list(counted(("decode", *rest)))


def queries_sent_in_decode_a(*given):
    it = counted(given)
    it.split = it.asked + it.found
    return by_steps(it)


def queries_sent_in_decode_b(phase, *rest):
    return by_list(counted(("prefill", *rest)))


def one_query_counted_a(phase, ranks, tokens, _queries, *rest):
    return by_steps(counted((phase, ranks, tokens, 1, *rest)))


def one_query_counted_b(*given):
    it = counted(given)
    it.split //= it.queries
    return by_list(it)


def lse_forgotten_a(*given):
    it = counted(given)
    it.split -= it.queries * it.heads * 4
    return by_steps(it)


def lse_forgotten_b(phase, ranks, tokens, queries, heads, kv_heads, head_dim, itemsize, room):
    it = counted((phase, ranks, tokens, queries, heads, kv_heads, head_dim, itemsize, room))
    width = 4 + (itemsize if phase == "prefill" else 0)
    it.split = queries * heads * head_dim * width
    return by_list(it)


def results_as_narrow_as_the_cache_a(*given):
    it = counted(given)
    it.split += it.queries * it.heads * (it.head_dim + 1) * (it.itemsize - 4)
    return by_steps(it)


def results_as_narrow_as_the_cache_b(*given):
    it = counted(given)
    numbers = it.head_dim + 1 + (it.head_dim if it.phase == "prefill" else 0)
    it.split = it.queries * it.heads * numbers * it.itemsize
    return by_list(it)


def values_forgotten_a(*given):
    it = counted(given)
    it.kv //= 2
    it.copy //= 2
    return by_steps(it)


def values_forgotten_b(phase, ranks, tokens, *rest):
    it = counted((phase, ranks, tokens, *rest))
    it.kv = tokens * it.kv_heads * it.head_dim * it.itemsize
    it.copy = sum(it.kv for _ in range(ranks))
    return by_list(it)


def grouping_ignored_a(*given):
    it = counted(given)
    it.kv = 2 * it.tokens * it.heads * it.head_dim * it.itemsize
    it.copy = it.ranks * it.kv
    return by_steps(it)


def grouping_ignored_b(phase, ranks, tokens, queries, heads, _kv_heads, *rest):
    return by_list(counted((phase, ranks, tokens, queries, heads, heads, *rest)))


def bytes_to_one_rank_a(*given):
    it = counted(given)
    name, _ = by_steps(it)
    return name, {"none": 0, "split_k": it.split}.get(name, it.kv)


def bytes_to_one_rank_b(*given):
    name, sent = by_list(counted(given))
    return name, sent // max(1, given[1] - 1)


def bytes_of_all_ranks_a(*given):
    name, sent = by_steps(counted(given))
    return name, sent * given[1]


def bytes_of_all_ranks_b(*given):
    it = counted(given)
    name, _ = by_list(it)
    pairs = it.ranks**2 - it.ranks
    return name, pairs * (it.split if name == "split_k" else it.kv)
