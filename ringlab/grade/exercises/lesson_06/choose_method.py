"""Which method a situation calls for: by the bytes that travel, and by the room there is."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from ringlab.grade.case import Case
from ringlab.grade.exercise import Check, Exercise, Look, Mistake, Outcome, Shows
from ringlab.grade.exercises.lesson_06.situations import Choice, Situation, chosen, several
from ringlab.grade.formulas import Formula, cases_of, computes, observe, result
from ringlab.grade.looks import results
from ringlab.grade.observation import Observation

MIB = 2**20
Chooser = Callable[[Situation], Choice]


def _of(choose: Chooser) -> Formula:
    return lambda **asked: choose(Situation(**asked))


_right = result(_of(chosen))


def _chooses(wrong: Chooser) -> Shows:
    return computes(_of(wrong), _of(chosen))


def _entry(place: int) -> Look:
    """The answer is a pair, and this entry of it is right."""

    def look(case: Case, seen: Observation) -> Outcome:
        (came,), (wanted,) = seen.results, _right(case)
        if not isinstance(came, (list, tuple)) or len(came) != 2:
            return Outcome(False, "a pair: a name and a number of bytes", f"{came!r:.60}")
        assert isinstance(wanted, tuple)
        one = replace(seen, results=(came[place],))
        return results(lambda _: (wanted[place],))(case, one)

    return look


def _by_phase(it: Situation) -> Choice:
    if it.phase == "decode":
        return chosen(it, moved=it.moved, cache=max(it.cache, it.moved))
    return chosen(it, moved=max(it.moved, it.cache + 1))


def _strictly(it: Situation) -> Choice:
    return chosen(it, moved=it.moved + 1) if it.moved == it.cache else chosen(it)


def _ring_always(it: Situation) -> Choice:
    return chosen(it, needed=it.room + 1)


def _gathers_always(it: Situation) -> Choice:
    return chosen(it, needed=0)


def _times(factor: Callable[[Situation], int]) -> Chooser:
    """The right method; of the bytes from one rank to another another multiple."""

    def choose(it: Situation) -> Choice:
        name, _ = chosen(it)
        one = {"none": 0, "split_k": it.moved}.get(name, it.cache)
        return name, factor(it) * one

    return choose


_case = cases_of(*Situation._fields)

EXERCISE = Exercise(
    name="choose_method",
    lesson="06",
    title="Choose the method",
    minutes=20,
    difficulty=3,
    objective="say for any shape whether keys and values should travel or results, and how",
    signature=f"choose_method({', '.join(Situation._fields)})",
    hints=(
        "Count what one rank gives to one other rank: its keys and values, or its results. What "
        "has a rank to send before it can get results for queries that it alone has?",
        "Keys and values: 2 * tokens * kv_heads * head_dim * itemsize. Results: queries * heads * "
        "(head_dim + 1) * 4; in prefill also queries * heads * head_dim * itemsize. The smaller "
        "one travels, W - 1 times; at a tie the results. Where keys and values travel, gathering "
        "needs room for those of all W ranks. First of all see to the one rank that sends nothing.",
    ),
    checks=(
        Check("method", 3, _entry(0)),
        Check("bytes", 2, _entry(1)),
    ),
    cases=(
        _case("1 rank", "decode", 1, 4096, 1, 32, 8, 128, 2, 1024 * MIB),
        _case("decode, 8 ranks, long", "decode", 8, 16384, 1, 64, 8, 128, 2, 1024 * MIB),
        _case("decode, 4 ranks, short, 8 drafted", "decode", 4, 40, 8, 64, 8, 128, 2, 64 * MIB),
        _case("prefill, 8 ranks, much room", "prefill", 8, 16384, 16384, 64, 8, 128, 2, 1024 * MIB),
        _case("prefill, 8 ranks, 500 MiB", "prefill", 8, 16384, 16384, 64, 8, 128, 2, 500 * MIB),
        _case("prefill, 5 ranks, 100 MiB", "prefill", 5, 10240, 10240, 16, 16, 64, 2, 100 * MIB),
        _case("prefill, 3 ranks, 10 MiB", "prefill", 3, 9216, 9216, 24, 6, 64, 2, 10 * MIB),
        _case("a short question, 8 ranks", "prefill", 8, 16384, 160, 64, 8, 128, 2, 1024 * MIB),
        _case("a longer question, 8 ranks", "prefill", 8, 16384, 1500, 64, 8, 128, 2, 1024 * MIB),
        _case("3 ranks, a tie", "decode", 3, 16, 3, 8, 2, 3, 2, MIB),
    ),
    observe=observe,
    mistakes=(
        Mistake(
            "one_rank_forgotten",
            "With one rank there is nobody to send to: no method is needed, and nothing is sent.",
            _chooses(several),
        ),
        Mistake(
            "at_a_tie",
            "Where both would send as many bytes you let keys and values travel. Results are the "
            "better choice then: each key is read on one rank, not on all.",
            _chooses(_strictly),
        ),
        Mistake(
            "own_copy_forgotten",
            "You make room for the keys and values of the other ranks. What is gathered holds "
            "those of all ranks, a copy of the rank's own among them: W blocks.",
            _chooses(lambda it: chosen(it, needed=(it.ranks - 1) * it.cache)),
        ),
        Mistake(
            "room_for_one_block",
            "You ask whether one block fits. Gathering puts those of all ranks on every rank: W "
            "blocks.",
            _chooses(lambda it: chosen(it, needed=it.cache)),
        ),
        Mistake(
            "room_ignored",
            "You gather where there is no room for all keys and values. That is what the ring is "
            "for: the same bytes, a few blocks at a time.",
            _chooses(_gathers_always),
        ),
        Mistake(
            "never_gathers",
            "You never gather. A ring sends just as many bytes, in W - 1 hops instead of one call: "
            "where there is room for everything, gather.",
            _chooses(_ring_always),
        ),
        Mistake(
            "by_the_phase_alone",
            "You choose by the phase. It is the bytes that decide: many drafted tokens and a short "
            "cache, or a short question about a long document, turn it round.",
            _chooses(_by_phase),
        ),
        Mistake(
            "queries_forgotten",
            "In prefill a rank's queries are on that rank alone. Before others can attend with "
            "them, they must be sent, and that counts too.",
            _chooses(lambda it: chosen(it, moved=it.found)),
        ),
        Mistake(
            "queries_sent_in_decode",
            "You send queries in decode. All ranks have computed the same token and have its "
            "queries already.",
            _chooses(lambda it: chosen(it, moved=it.found + it.asked)),
        ),
        Mistake(
            "one_query_counted",
            "You counted one query. Each query has a result of its own.",
            _chooses(lambda it: chosen(it._replace(queries=1))),
        ),
        Mistake(
            "lse_forgotten",
            "You counted D numbers for a result. The LSE travels too; without it nobody knows what "
            "a rank counts for.",
            _chooses(lambda it: chosen(it, moved=it.moved - 4 * it.queries * it.heads)),
        ),
        Mistake(
            "results_as_narrow_as_the_cache",
            "Results are in float32, four bytes a number, however narrow the cache is.",
            _chooses(
                lambda it: chosen(it, moved=it.moved - it.found + it.found // 4 * it.itemsize)
            ),
        ),
        Mistake(
            "values_forgotten",
            "You counted keys alone. A token has a key and a value, and both would travel.",
            _chooses(lambda it: chosen(it, cache=it.cache // 2)),
        ),
        Mistake(
            "grouping_ignored",
            "You counted as many KV heads as query heads. Several query heads share a key and a "
            "value, which are kept, and sent, once.",
            _chooses(lambda it: chosen(it._replace(kv_heads=it.heads))),
        ),
        Mistake(
            "bytes_to_one_rank",
            "Your method is right, and your bytes are those from one rank to *one* other. It sends "
            "as many to, or for, each of the W - 1 others.",
            _chooses(_times(lambda it: 1)),
        ),
        Mistake(
            "bytes_of_all_ranks",
            "Your method is right, and your bytes are those of all ranks together. Asked is what "
            "each rank sends.",
            _chooses(_times(lambda it: it.ranks * (it.ranks - 1))),
        ),
    ),
)
