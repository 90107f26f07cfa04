"""What readings say: pure arithmetic on times that are made up here."""

from __future__ import annotations

import threading
import time

import pytest

from ringlab.bench.losses import losses, ratio
from ringlab.bench.parts import PARTS
from ringlab.bench.readings import (
    WAITING,
    Phases,
    Reading,
    Stopwatch,
    compare,
    interleave,
    over_ranks,
)
from ringlab.bench.rows import Row, fastest


def made_up(*cpu: float) -> list[Reading]:
    return [Reading(wall=2 * seconds, cpu=seconds) for seconds in cpu]


def test_the_ratio_is_of_the_medians_and_more_than_one_where_ranks_take_less() -> None:
    found = compare(made_up(1.0, 5.0, 2.0), made_up(9.0, 4.0, 3.0))
    assert found.ours == Reading(4.0, 2.0)
    assert found.baseline == Reading(8.0, 4.0)
    assert found.ratio == 2.0
    assert found.wall_ratio == 2.0


def test_the_spread_is_of_rounds_in_which_both_ran_one_after_the_other() -> None:
    found = compare(made_up(1.0, 5.0, 2.0), made_up(9.0, 4.0, 3.0))
    assert (found.low, found.high) == (0.8, 9.0)


def test_wall_time_and_cpu_time_are_not_mixed_up() -> None:
    found = compare([Reading(wall=1.0, cpu=4.0)], [Reading(wall=3.0, cpu=2.0)])
    assert (found.ratio, found.wall_ratio) == (0.5, 3.0)


@pytest.mark.parametrize(("ours", "theirs"), [(0, 0), (2, 1), (1, 0)])
def test_rounds_that_do_not_match_are_refused(ours: int, theirs: int) -> None:
    with pytest.raises(ValueError, match=f"got {ours} and {theirs}"):
        compare(made_up(*[1.0] * ours), made_up(*[1.0] * theirs))


def test_ranks_take_the_longest_wall_time_and_the_sum_of_cpu_time() -> None:
    ranks: list[Phases] = [{"forward": Reading(3.0, 1.0)}, {"forward": Reading(2.0, 1.5)}]
    assert over_ranks(ranks) == {"forward": Reading(3.0, 2.5)}


def test_contestants_take_turns_and_none_is_always_first() -> None:
    order: list[str] = []

    def run(name: str) -> Phases:
        order.append(name)
        return {"forward": Reading(float(len(order)), 0.0)}

    found = interleave({"a": lambda: run("a"), "b": lambda: run("b")}, 3)
    assert order == ["a", "b", "b", "a", "a", "b"]
    assert [phases["forward"].wall for phases in found["b"]] == [2.0, 3.0, 6.0]


def test_the_fastest_baseline_is_that_with_the_least_cpu_time_over_all_phases() -> None:
    first: list[Phases] = [{"forward": Reading(0.0, 1.0), "backward": Reading(0.0, 8.0)}]
    second: list[Phases] = [{"forward": Reading(9.0, 2.0), "backward": Reading(9.0, 3.0)}]
    assert fastest({"first": first, "second": second}) == "second"


def test_a_stopwatch_counts_the_cpu_time_of_every_thread_and_not_sleep() -> None:
    def burn() -> None:
        end = time.thread_time() + 0.1
        while time.thread_time() < end:
            pass

    with Stopwatch() as watch:
        threads = [threading.Thread(target=burn) for _ in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        time.sleep(0.2)
    assert 0.2 <= watch.reading.cpu < 1.0
    assert watch.reading.wall > watch.reading.cpu


def spent(**seconds: float) -> Reading:
    parts = dict.fromkeys((*PARTS, WAITING), 0.0) | seconds
    return Reading(2.0, sum(parts[part] for part in PARTS), parts)


def test_losses_are_the_difference_in_each_part_and_add_up_to_the_ratio() -> None:
    ours = spent(kernel=4.5, merge=0.5, copies=0.375, program=0.25, transport=0.125, waiting=1.0)
    found = losses([ours], [spent(kernel=3.75, copies=0.25)])
    assert found == {
        "tails": 18.75, "merge": 12.5, "copies": 3.125, "program": 6.25, "transport": 3.125,
        "waiting": 50.0,
    }  # fmt: skip
    assert ratio(found) == pytest.approx(4.0 / 5.75)
    assert ratio(found, communication=False) == pytest.approx(4.0 / 5.625)


def test_a_slow_round_is_not_a_loss() -> None:
    quiet, busy = spent(kernel=4.0, copies=1.0), spent(kernel=9.0, copies=2.0)
    found = losses([busy, quiet], [quiet, busy])
    assert set(found.values()) == {0.0}
    assert ratio(found) == 1.0


def test_parts_of_ranks_are_added_and_waiting_is_their_mean() -> None:
    one, other = spent(kernel=1.0, waiting=0.5), spent(kernel=2.0, waiting=1.5)
    together = over_ranks([{"forward": one}, {"forward": other}])["forward"]
    assert (together.parts["kernel"], together.parts[WAITING]) == (3.0, 1.0)


def test_a_row_holds_its_losses_and_the_ratios_they_add_up_to() -> None:
    result = compare(made_up(4.0), made_up(2.0))
    found = losses([spent(kernel=5.0)], [spent(kernel=4.0)])
    row = Row("prefill", "forward", 8, 2, 2, 4, "float32", "full", "SDPA", result, found)
    flat = row.flat()
    assert (flat["tails_percent"], flat["least_ratio"], flat["bound"]) == (25.0, 0.8, 0.8)
