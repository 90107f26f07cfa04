"""The library's tests notice deliberate faults; and what says so is not easily fooled."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest

from tests.mutants.catalog import Mutant, floors
from tests.mutants.trial import ROOT, Tree, Verdict

pytestmark = pytest.mark.timeout(600)  # each starts a pytest, and loads torch once

FLOORS = floors()
MUTANTS = [(floor, mutant) for floor in FLOORS.values() for mutant in floor.mutants]
SMOKE = {
    "sends are paired with receives of another group",
    "the merge weighs the wrong side more",
    "under gloo's rules a message is matched whatever its tag",
}
"""What the first tier tries."""

WEIGHT = "    weight = torch.sigmoid(other_lse - lse)\n"
WITNESS = Mutant("numerics", "the merge weighs the wrong side more", "ringlab/numerics/merge.py",
                 WEIGHT, "    weight = torch.sigmoid(lse - other_lse)\n")  # fmt: skip
QUICK = ["tests/numerics/test_merge.py"]


@pytest.fixture(scope="session")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Tree]:
    """One copy of the sources for all; each mutant is taken out again."""
    made = Tree(tmp_path_factory.mktemp("mutants") / "tree")
    yield made
    made.close()


def named(mutants):
    return [pytest.param(floor, mutant, id=f"{floor.name}-{mutant.what}".replace(" ", "-"))
            for floor, mutant in mutants]  # fmt: skip


@pytest.mark.parametrize(
    ("floor", "mutant"), named([each for each in MUTANTS if each[1].what in SMOKE])
)
def test_a_fault_in_the_library_is_noticed_by_a_failed_assertion(tree, floor, mutant):
    verdict = tree.judge(mutant, floor.tests)
    assert verdict.status == "killed", verdict


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize(
    ("floor", "mutant"), named([each for each in MUTANTS if each[1].what not in SMOKE])
)
def test_every_fault_is_noticed_unless_it_says_why_not(tree, floor, mutant):
    verdict = tree.judge(mutant, floor.tests)
    assert verdict.status == mutant.expected, verdict


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("floor", FLOORS.values(), ids=FLOORS)
def test_without_a_fault_the_tests_of_a_floor_are_green(tree, floor):
    assert tree.run(floor.tests).status == "survived"


def test_the_text_that_a_mutant_changes_is_there_once():
    for _, mutant in MUTANTS:
        assert mutant.applied((ROOT / mutant.file).read_text(encoding="utf-8"))


def test_there_are_enough_faults_on_each_floor():
    assert len(SMOKE & {mutant.what for _, mutant in MUTANTS}) == len(SMOKE)
    assert len({mutant.what for _, mutant in MUTANTS}) == len(MUTANTS) >= 48
    assert all(len(floor.mutants) >= 5 for floor in FLOORS.values())
    surviving = [mutant for _, mutant in MUTANTS if mutant.survives]
    assert len(surviving) <= 0.05 * len(MUTANTS)


# ---- what judges -------------------------------------------------------------------------


def test_a_mutant_that_changes_nothing_survives(tree):
    same = replace(WITNESS, new="    weight = torch.sigmoid(other_lse - lse)  # a comment\n")
    assert tree.judge(same, QUICK).status == "survived"


def test_a_syntax_error_is_not_a_kill(tree):
    broken = replace(WITNESS, new="    weight = (\n")
    assert tree.judge(broken, QUICK).status in ("collection", "error")


def test_an_exception_is_not_a_kill(tree):
    raises = replace(WITNESS, new="    raise KeyError('a fault of another kind')\n")
    assert tree.judge(raises, QUICK).status == "error"


def test_a_mutant_whose_text_is_gone_is_an_error_and_leaves_the_tree_as_it_was(tree):
    gone = replace(WITNESS, old="    weight = torch.sigmoid(what_was_here_before)\n")
    with pytest.raises(LookupError, match="occurs 0 times in"):
        tree.judge(gone, QUICK)
    path = "ringlab/numerics/merge.py"
    assert (tree.folder / path).read_bytes() == (ROOT / path).read_bytes()


def test_the_tests_of_a_mutant_run_the_library_in_the_tree(tree):
    """What is put into the real library afterwards is not there: the tree is a copy."""
    first: Verdict = tree.judge(WITNESS, QUICK)
    assert first.status == "killed"
    assert tree.run(QUICK).status == "survived"
