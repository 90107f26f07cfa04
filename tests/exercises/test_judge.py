from __future__ import annotations

import pytest
import torch

from ringlab.grade.case import Case
from ringlab.grade.exercise import Check, Exercise, Mistake, Outcome
from ringlab.grade.judge import report
from ringlab.grade.numbers import alike, by_rank, close, difference
from ringlab.grade.observation import Failure, Observation
from ringlab.grade.observe import alone, on_ranks
from ringlab.grade.oracle import exact_attention
from ringlab.grade.shows import all_of, any_of, fails, gives, where
from ringlab.grade.windows import windows, work_of
from ringlab.timeline import Timeline
from tests import oracle

X = torch.arange(6.0).reshape(2, 3)


@pytest.mark.parametrize(
    ("found", "got"),
    [
        (X[None], "a tensor [1, 2, 3] of float32"), (X.double(), "a tensor [2, 3] of float64"),
        (X.to("meta"), "on meta"), (X.tolist(), "a list"), (None, "a NoneType"), (5, "a int"),
    ],
)  # fmt: skip
def test_form_comes_before_numbers(found, got):
    apart = difference(found, X, "the result")
    assert apart is not None
    assert apart.form
    assert got in apart.got
    assert apart.expected == "a tensor [2, 3] of float32 on cpu"


def test_the_largest_difference_is_told_with_its_place():
    found = X.clone()
    found[0, 1] += 0.5
    found[1, 2] -= 3
    apart = difference(found, X, "rank 2")
    assert apart is not None
    assert not apart.form
    assert (apart.where, apart.expected) == ("rank 2, at [1, 2]", "5")
    assert apart.got == "2 (2 of 6 numbers differ, here most)"


@pytest.mark.parametrize("bad", [torch.nan, torch.inf, -torch.inf])
def test_what_is_no_number_differs_from_every_number(bad):
    found = X.clone()
    found[1, 0] = bad
    assert not close(found, X)
    assert close(found, found.clone())
    apart = difference(found, X, "x")
    assert apart is not None
    assert apart.where == "x, at [1, 0]"


def test_true_is_no_one_and_an_integer_may_stand_for_a_float():
    assert difference(True, 1, "x") is not None
    assert difference(1, 1.0, "x") is None
    assert difference(1.0, 1, "x") is not None
    assert difference([1, 2], (1, 2), "x") is None
    assert difference({"a": 1}, {"a": 2}, "x").where == "x, 'a'"


def test_forms_of_all_ranks_come_before_numbers_of_any():
    apart = by_rank((X + 1, X[0]), (X, X))
    assert apart is not None
    assert apart.form
    assert apart.where == "rank 1"
    assert by_rank((X,), (X, X)).got == "1 ranks"


def test_sixteen_bits_are_compared_by_their_norm():
    right = torch.randn(1000, generator=torch.Generator().manual_seed(0)).bfloat16()
    one = right.clone()
    one[3] = torch.nextafter(one[3], torch.tensor(9.0).bfloat16())
    assert close(one, right)
    assert not close((right.float() * 1.004).bfloat16(), right)
    assert alike((right.float() * 1.004).bfloat16(), right)
    assert not alike((right.float() * 1.1).bfloat16(), right)


@pytest.mark.parametrize("kv_heads", [1, 2, 6])
def test_the_judges_oracle_is_that_of_the_tests(kv_heads):
    draw = torch.Generator().manual_seed(1)
    q, dout = torch.randn(2, 2, 6, 5, 4, generator=draw, dtype=torch.float64)
    k, v = torch.randn(2, 2, kv_heads, 7, 4, generator=draw, dtype=torch.float64)
    mask = torch.ones(5, 7, dtype=torch.bool).tril()
    ours, theirs = (
        exact_attention(q, k, v, allowed=mask, dout=dout),
        oracle.attention(q, k, v, dout, mask=mask),
    )
    for name in ("out", "lse", "dq", "dk", "dv"):
        assert oracle.error(getattr(ours, name), getattr(theirs, name)) < 1e-13


def test_a_row_without_keys_is_zero_in_the_judges_oracle():
    q = k = v = torch.ones(1, 1, 2, 2)
    mask = torch.tensor([[False, False], [True, True]])
    ours = exact_attention(q, k, v, allowed=mask, dout=torch.ones(1, 1, 2, 2))
    assert ours.out[0, 0, 0].tolist() == [0, 0]
    assert ours.lse[0, 0, 0] == -torch.inf
    assert ours.dv.isfinite().all()


def made(*mistakes: Mistake) -> Exercise:
    """An exercise whose answer doubles a number, and must not return text."""

    def double(case: Case, seen: Observation) -> Outcome:
        return Outcome(seen.results == (2 * case.integer("n"),), "the double", str(seen.results))

    def small(case: Case, seen: Observation) -> Outcome:
        return Outcome(True, "", "")

    return Exercise(
        "double", "00", "Double", 5, 1, "double", "double(n)", ("", ""),
        (Check("number", 2, double), Check("size", 1, small, after="number")),
        tuple(Case(f"{n}", options={"n": n}) for n in (0, 1, 2)),
        lambda answer, case: alone(answer, case.integer("n")), mistakes,
    )  # fmt: skip


def graded(answer, *mistakes: Mistake):
    exercise = made(*mistakes)
    return report(exercise, [(case, exercise.look(answer, case)) for case in exercise.cases])


def right(case: Case):
    return (2 * case.integer("n"),)


SQUARED = Mistake("squared", "", gives(lambda case: (case.integer("n") ** 2,), right))
ADDED = Mistake("added", "", gives(lambda case: (case.integer("n") + 1,), right))
ANY = Mistake("any", "", lambda case, seen: True)
RAISED = Mistake("raised", "", fails("KeyError", words="lost"))


def test_points_are_given_for_checks_that_pass_in_every_case():
    assert graded(lambda n: 2 * n).earned == {"number": 2, "size": 1}
    assert graded(lambda n: 2 * n).passed
    assert graded(lambda n: n).earned == {"number": 0, "size": 0}
    assert graded(lambda n: n if n else 0).points == 0


def test_a_check_after_a_failed_one_is_not_looked_at():
    outcomes = graded(lambda n: n).findings[1].outcomes
    assert outcomes["number"].looked
    assert not outcomes["size"].looked
    assert not outcomes["size"].passed


def test_the_first_mistake_that_shows_is_named():
    assert graded(lambda n: n * n, ADDED, SQUARED, ANY).mistake is SQUARED
    assert graded(lambda n: n * n, ANY, SQUARED).mistake is ANY
    assert graded(lambda n: 2 * n, ANY).mistake is None


def test_a_mistake_is_not_named_if_one_case_speaks_against_it():
    assert graded(lambda n: n * n if n == 1 else 77, SQUARED).mistake is None


def test_a_mistake_shows_in_how_a_run_failed():
    def answer(n):
        raise KeyError("lost")

    assert graded(answer, SQUARED, RAISED).mistake is RAISED
    assert graded(answer, SQUARED).mistake is None


def test_the_finding_shown_is_one_in_which_the_mistake_shows():
    def answer(n):
        if n == 0:
            raise ValueError("other")
        return n + 1

    later = Mistake("later", "", where(lambda case, _: case.integer("n") > 1, ADDED.shows))
    found = graded(answer, later)
    assert found.mistake is later
    assert found.worst.case.title == "2"


def test_of_an_unknown_mistake_a_failed_run_is_shown_before_wrong_numbers():
    def answer(n):
        if n == 2:
            raise ValueError("here")
        return 77

    assert graded(answer, SQUARED).worst.case.title == "2"


def test_of_a_stub_no_mistake_is_asked():
    def answer(n):
        raise NotImplementedError()

    assert graded(answer, Mistake("asked", "", lambda case, seen: 1 / 0)).mistake is None


def test_ways_in_which_mistakes_show_combine():
    seen, case = Observation((), Timeline(1)), Case("x")
    yes, no, perhaps = (lambda case, seen, v=v: v for v in (True, False, None))
    assert any_of(no, yes)(case, seen) is True
    assert any_of(no, perhaps)(case, seen) is False
    assert any_of(perhaps)(case, seen) is None
    assert all_of(yes, perhaps)(case, seen) is None
    assert all_of(yes, no)(case, seen) is False
    assert all_of(yes)(case, seen) is True


@pytest.mark.parametrize(
    "value",
    [{}, {"title": 3}, {"title": "a", "seed": "b"}, {"title": "a", "more": 1}, "case",
     {"title": "a", "world_size": 0}, {"title": "a", "world_size": True},
     {"title": "a", "options": {"x": object()}}],
)  # fmt: skip
def test_a_case_that_is_none_is_refused(value):
    with pytest.raises((ValueError, TypeError)):
        Case.from_plain(value)


def test_a_case_comes_back_from_plain_data():
    case = Case("a", 3, 5, {"x": 1, "groups": [[0, 2]]}, True)
    back = Case.from_plain(case.as_plain())
    assert vars(back) == vars(case)
    with pytest.raises(TypeError, match="option 'groups' is"):
        case.integer("groups")


def test_a_class_is_wanted_where_the_signature_says_so():
    exercise = made()
    assert exercise.answer == "double"
    assert exercise.look(3, exercise.cases[0]).failure.kind == "NotCallable"


def test_a_window_holds_what_is_computed_while_a_message_is_under_way():
    def answer(x):
        from torch import distributed as dist

        y, other = torch.empty_like(x), 1 - dist.get_rank()
        x @ x
        ops = [dist.P2POp(dist.isend, x, other), dist.P2POp(dist.irecv, y, other)]
        works = dist.batch_isend_irecv(ops)
        x @ x
        x @ x
        for work in works:
            work.wait()
        return x @ y

    timeline = on_ranks(answer, [(torch.eye(3),)] * 2).timeline
    one = 2 * 3**3
    assert [(w.flops, w.flops_before) for w in windows(timeline, 0)] == [(2 * one, one)]
    assert work_of(timeline, 1) == 4 * one


def test_a_failure_is_told_by_its_first_line():
    exercise = made()
    seen = Observation((), Timeline(1), Failure("Killed", "used too much memory\nmore"))
    found = report(exercise, [(exercise.cases[0], seen)])
    assert found.findings[0].outcomes["number"].got == "used too much memory"
    assert found.points == 0
