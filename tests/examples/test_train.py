"""Training over ranks is training on one device, and each way to get it wrong is noticed."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from functools import cache

import model
import pytest
import torch
import torch.distributed as dist
import train
from torch import Tensor
from torch.nn.functional import cross_entropy

from ringlab import Contiguous, RankFailed, World, ring_attention

CPU = torch.device("cpu")


def options(*given: str, tokens: int = 29, dtype: str = "float64") -> argparse.Namespace:
    """Three sequences of a length that nothing divides."""
    found = train.arguments(["--steps=2", "--sequences=3", f"--dtype={dtype}", *given])
    found.tokens = tokens
    return found


@cache
def alone(tokens: int, dtype: str) -> train.Log:
    return train.train_alone(options(tokens=tokens, dtype=dtype), CPU)


@cache
def first_step() -> train.Log:
    return train.train_alone(options("--steps=1"), CPU)


def assert_same(found: train.Log, expected: train.Log, bound: float) -> None:
    torch.testing.assert_close(found.losses, expected.losses, rtol=bound, atol=0)
    torch.testing.assert_close(found.norms, expected.norms, rtol=bound, atol=0)
    for mine, theirs in zip(found.parameters, expected.parameters, strict=True):
        torch.testing.assert_close(mine, theirs, rtol=bound, atol=bound)


def test_one_device_trains_on_the_mean_over_all_tokens_that_count() -> None:
    """The first loss and gradient norm again, token by token."""
    given = options()
    tokens, labels = train.new_batch(0, given, 64)
    decoder = model.new_decoder(model.Config(), given.seed, CPU, torch.float64)
    logits = decoder(tokens, torch.arange(29), model.one_device).log_softmax(dim=-1)
    terms = [
        -logits[row, place, tokens[row, place + 1]]
        for row in range(3)
        for place in range(28)
        if labels[row, place] != train.IGNORE
    ]
    loss = torch.stack(terms).mean()
    grads = torch.autograd.grad(loss, list(decoder.parameters()))
    norm = torch.cat([grad.flatten() for grad in grads]).norm()
    found = alone(29, "float64")
    assert (found.losses[0], found.norms[0]) == pytest.approx((loss.item(), norm.item()), rel=1e-12)


def test_a_label_is_the_token_that_follows_and_prompts_and_the_end_have_none() -> None:
    tokens, labels = train.new_batch(1, options(), 64)
    counting = labels != train.IGNORE
    assert torch.equal(labels[counting], tokens.roll(-1, 1)[counting])
    assert not counting[:, -1].any()
    counts = counting.sum(dim=1).tolist()
    assert min(counts) >= 14
    assert len(set(counts)) > 1


def test_report_e13_the_loss_falls() -> None:
    found = train.train_alone(train.arguments(["--steps=8", "--tokens=22"]), CPU)
    assert found.losses[-1] < 0.5 * found.losses[0]


@pytest.mark.parametrize(
    ("size", "given"),
    [
        (1, ()),
        (2, ()),
        (4, ()),
        (4, ("--layout=striped",)),
        (4, ("--layout=contiguous", "--method=all_gather")),
        (4, ("--cp=2",)),
        (3, ("--cp=1",)),
        (6, ("--cp=3", "--method=all_gather")),
    ],
    ids=str,
)
def test_report_a4_e8_e9_losses_norms_and_parameters_are_those_of_one_device(
    size: int, given: tuple[str, ...]
) -> None:
    for found in World(size).run(train.train, options(*given), CPU):
        assert_same(found, alone(29, "float64"), 1e-10)


@pytest.mark.parametrize("given", [(), ("--cp=2",)], ids=str)
def test_float32_differs_by_rounding_only(given: tuple[str, ...]) -> None:
    for found in World(4).run(train.train, options(*given, dtype="float32"), CPU):
        assert_same(found, alone(29, "float32"), 1e-4)


def test_ranks_without_a_token_or_without_a_label_take_part() -> None:
    given = options("--layout=contiguous", tokens=3)
    for found in World(4).run(train.train, given, CPU):
        assert_same(found, alone(3, "float64"), 1e-10)


def test_only_one_rank_speaks(capsys: pytest.CaptureFixture[str]) -> None:
    log = World(2).run(train.train, options(), CPU)[0]
    lines = capsys.readouterr().out.splitlines()
    assert lines == [
        f"step {step}: loss {loss:.6f}, gradient norm {norm:.6f}"
        for step, (loss, norm) in enumerate(zip(log.losses, log.norms, strict=True))
    ]


@pytest.mark.parametrize(("size", "cp"), [(4, 3), (4, 0), (4, -1), (4, 1), (2, 4)])
def test_a_grid_that_cannot_be_is_refused(size: int, cp: int) -> None:
    with pytest.raises((SystemExit, RankFailed), match=f"do not make rows of --cp {cp} ranks"):
        World(size).run(train.train, options(f"--cp={cp}"), CPU)


@pytest.mark.parametrize("given", ["--steps=0", "--tokens=7", "--layout=ring", "--method=ulysses"])
def test_a_wrong_command_line_is_refused(given: str) -> None:
    with pytest.raises(SystemExit):
        train.arguments([given])


def shift_labels_on_the_shard(patch: pytest.MonkeyPatch) -> None:
    right = train.shard

    def wrong(*given: object) -> train.Batch:
        inputs, labels = right(*given)
        rolled = inputs.roll(-1, dims=1)
        rolled[:, -1] = train.IGNORE
        return train.Batch(inputs, rolled.where(labels != train.IGNORE, train.IGNORE))

    patch.setattr(train, "shard", wrong)


def average_the_means_of_ranks(patch: pytest.MonkeyPatch) -> None:
    def wrong(logits: Tensor, labels: Tensor) -> Tensor:
        share = cross_entropy(logits.flatten(0, 1), labels.flatten(), ignore_index=train.IGNORE)
        return share / dist.get_world_size()

    patch.setattr(train, "loss_share", wrong)


def count_ignored_tokens(patch: pytest.MonkeyPatch) -> None:
    def wrong(logits: Tensor, labels: Tensor) -> Tensor:
        total = cross_entropy(logits.flatten(0, 1), labels.flatten(), reduction="sum")
        return total / (3 * 29)

    patch.setattr(train, "loss_share", wrong)


def average_gradients(patch: pytest.MonkeyPatch) -> None:
    right = train.sum_over_ranks

    def wrong(decoder: torch.nn.Module, loss: Tensor) -> Tensor:
        total = right(decoder, loss)
        for parameter in decoder.parameters():
            parameter.grad /= dist.get_world_size()
        return total

    patch.setattr(train, "sum_over_ranks", wrong)


def reduce_within(rows: list[list[int]]) -> Callable[[pytest.MonkeyPatch], None]:
    """Sum the gradients over a part of the ranks only, and the loss over all."""

    def broken(patch: pytest.MonkeyPatch) -> None:
        def wrong(decoder: torch.nn.Module, loss: Tensor) -> Tensor:
            groups = [dist.new_group(row) for row in rows]
            (mine,) = (g for g, row in zip(groups, rows, strict=True) if dist.get_rank() in row)
            for parameter in decoder.parameters():
                dist.all_reduce(parameter.grad, group=mine)
            dist.all_reduce(loss)
            return loss

        patch.setattr(train, "sum_over_ranks", wrong)

    broken.__name__ = f"reduce_within_{rows}"
    return broken


def turn_by_local_positions(patch: pytest.MonkeyPatch) -> None:
    right = model.apply_rope
    patch.setattr(model, "apply_rope", lambda x, positions: right(x, torch.arange(x.shape[2])))


def attend_in_another_layout(patch: pytest.MonkeyPatch) -> None:
    def wrong(q: Tensor, k: Tensor, v: Tensor, **given: object) -> Tensor:
        return ring_attention(q, k, v, **{**given, "layout": Contiguous()})

    patch.setitem(train.METHODS, "ring", wrong)


def attend_to_the_shard_only(patch: pytest.MonkeyPatch) -> None:
    def wrong(q: Tensor, k: Tensor, v: Tensor, **_: object) -> Tensor:
        return model.one_device(0, q, k, v)

    patch.setitem(train.METHODS, "ring", wrong)


def attend_to_the_future(patch: pytest.MonkeyPatch) -> None:
    def wrong(q: Tensor, k: Tensor, v: Tensor, **given: object) -> Tensor:
        return ring_attention(q, k, v, **{**given, "causal": False})

    patch.setitem(train.METHODS, "ring", wrong)


def give_every_row_the_first_sequences(patch: pytest.MonkeyPatch) -> None:
    right = train.new_batch

    def wrong(*given: object) -> train.Batch:
        return train.Batch(*(x[[0, 1, 0]] for x in right(*given)))

    patch.setattr(train, "new_batch", wrong)


WRONG_ON_A_ROW = [
    shift_labels_on_the_shard,
    average_the_means_of_ranks,
    count_ignored_tokens,
    average_gradients,
    turn_by_local_positions,
    attend_in_another_layout,
    attend_to_the_shard_only,
    attend_to_the_future,
]
WRONG_ON_A_GRID = [
    average_the_means_of_ranks,
    reduce_within([[0, 1], [2, 3]]),
    reduce_within([[0, 2], [1, 3]]),
    give_every_row_the_first_sequences,
]
WRONG = [(2, wrong) for wrong in WRONG_ON_A_ROW] + [(4, wrong) for wrong in WRONG_ON_A_GRID]


@pytest.mark.parametrize(
    ("size", "wrong"), WRONG, ids=lambda x: x if isinstance(x, int) else x.__name__
)
def test_report_e1_e7_e8_e9_e11_a_wrong_training_does_not_pass_the_check(
    size: int, wrong: Callable[[pytest.MonkeyPatch], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    given = options("--cp=2", "--steps=1")
    expected = first_step()
    wrong(monkeypatch)
    found = World(size).run(train.train, given, CPU)[0]
    with pytest.raises(SystemExit, match="the ranks do not train what one device trains"):
        train.check(found, expected)


@pytest.mark.parametrize("size", [2, 4])
def test_the_check_passes_what_is_right(size: int, capsys: pytest.CaptureFixture[str]) -> None:
    found = World(size).run(train.train, options("--cp=2", "--steps=1"), CPU)[0]
    train.check(found, first_step())
    assert "against one device: losses differ by" in capsys.readouterr().out
