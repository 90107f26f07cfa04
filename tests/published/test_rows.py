from __future__ import annotations

from copy import deepcopy
from dataclasses import replace
from itertools import combinations

import pytest

from benchmarks.published import page, results
from benchmarks.published.predict import Prediction, predict
from benchmarks.published.rows import DATA, KERNEL, UNITS, load, parse, tomllib
from benchmarks.published.score import error, met, score
from benchmarks.published.variants import VARIANTS
from ringlab.machine.published import machine_as_published

ROWS = load()


@pytest.fixture
def document():
    return deepcopy(tomllib.loads(DATA.read_text("utf-8")))


def of(document, name):
    return next(row for row in document["row"] if row["name"] == name)


def test_each_row_has_a_name_of_its_own_a_source_a_unit_and_a_date():
    assert len({row.name for row in ROWS}) == len(ROWS)
    for row in ROWS:
        assert row.source.address.startswith("https://")
        assert row.source.place
        assert row.source.hardware
        assert row.source.read.startswith("2026-")
        assert row.unit in UNITS
        assert row.published > 0


def test_each_priced_row_has_a_machine_and_tokens_that_divide():
    for row in ROWS:
        if row.program:
            assert machine_as_published(row.machine, row.ranks).size == row.ranks
            assert row.tokens % row.ranks == 0
            assert row.heads % row.kv_heads == 0


def test_at_least_twelve_rows_count_and_all_are_of_several_ranks():
    counted = [row for row in ROWS if row.scored]
    assert len(counted) >= 12
    assert all(row.program in VARIANTS and row.ranks > 1 for row in counted)
    quantities = [row.quantity for row in counted]
    assert all(one != other for one, other in combinations(quantities, 2))


def test_a_row_that_served_to_calibrate_cannot_count(document):
    of(document, "kernel, forward, causal, 8,192 tokens, B200")["scored"] = True
    with pytest.raises(ValueError, match="served to calibrate, so it cannot count"):
        parse(document)
    cheat = next(row for row in ROWS if row.scored)
    object.__setattr__(cheat := replace(cheat), "calibrates", True)
    with pytest.raises(ValueError, match="served to calibrate, so it cannot count"):
        score([(cheat, Prediction(1.0, 1.0, 1.0))])


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"quantity": "burst both 65536"}, "counted twice: burst both 65536"),
        ({"quantity": ""}, "say which quantity"),
        ({"unit": "furlongs"}, "unit 'furlongs' is none of"),
        ({"program": "a ring"}, "there is no program 'a ring'"),
        ({"program": KERNEL}, "no program of several ranks"),
        ({"scored": False}, "does not count: say why"),
        ({"speed": 3}, "unknown speed"),
    ],
)
def test_a_row_that_is_not_well_formed_is_refused(document, changes, message):
    of(document, "zig-zag, forward, 8x H800").update(changes)
    with pytest.raises(ValueError, match=message):
        parse(document)


def test_within_fifteen_per_cent_is_met_on_both_sides():
    assert error(110.0, 100.0) == pytest.approx(0.1)
    assert met(114.9, 100.0)
    assert met(85.1, 100.0)
    assert not met(115.1, 100.0)
    assert not met(84.9, 100.0)
    assert not met(None, 100.0)


def test_the_score_counts_only_rows_that_count():
    counted = [row for row in ROWS if row.scored][:3]
    other = next(row for row in ROWS if not row.scored)
    found = score(
        [
            (counted[0], Prediction(counted[0].published, None, 2 * counted[0].published)),
            (counted[1], Prediction(counted[1].published, counted[1].published, None)),
            (counted[2], Prediction(2 * counted[2].published, None, None)),
            (other, Prediction(other.published, other.published, other.published)),
        ]
    )
    assert (found.rows, found.variant, found.ringlab, found.bound) == (3, 2, 1, 0)


def test_each_miss_has_an_explanation_and_each_hit_needs_none():
    for row, found in results.stored(ROWS):
        if row.scored:
            assert bool(row.explanation) == (not met(found.variant, row.published)), row.name


def test_what_is_stored_was_predicted_with_the_factors_of_this_tree():
    assert results.json.loads(results.STORED.read_text("utf-8"))["factors"] == results.fingerprint()


@pytest.mark.parametrize(
    "name",
    ["zig-zag, forward, 4x B200", "kernel, forward, causal, 8,192 tokens, H100",
     "Llama 3 405B, prefill of 1M tokens, 128 H100"],
)  # fmt: skip
def test_a_prediction_comes_out_as_it_is_stored(name, tmp_path):
    row = next(row for row in ROWS if row.name == name)
    results.store([(row, predict(row))], tmp_path / "one.json")
    assert results.stored([row], tmp_path / "one.json") == results.stored([row])


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_all_predictions_come_out_as_they_are_stored(tmp_path):
    results.store(results.run(ROWS), tmp_path / "all.json")
    assert results.stored(ROWS, tmp_path / "all.json") == results.stored(ROWS)


def test_the_page_is_what_the_stored_predictions_say():
    assert page.PAGE.read_text("utf-8") == page.page(results.stored(ROWS))
