"""Train a small decoder on sequences that are sharded over ranks (context parallelism).

    torchrun --standalone --nproc-per-node=4 examples/train.py --cp 2 --check

The ranks form a grid of DP x CP. Each row of it shares some sequences, each of its ranks some
tokens of them. The loss and the parameters are those of one device, for every grid, because

* labels are shifted before the sequence is cut: the label of a shard's last token stands on
  another rank;
* rotary embedding gets global positions;
* the loss of a rank is a sum over its tokens, divided by the number of tokens that count on all
  ranks. Ranks hold different numbers of them: a mean of the ranks' means is another loss;
* gradients are summed over all ranks, DP and CP alike.
"""

from __future__ import annotations

import argparse
from typing import NamedTuple

import torch
import torch.distributed as dist
from launch import join
from model import Config, new_decoder, one_device
from torch import Tensor, nn
from torch.distributed.device_mesh import DeviceMesh, init_device_mesh
from torch.nn.functional import cross_entropy

from ringlab import Contiguous, Layout, Striped, ZigZag, all_gather_attention, ring_attention

LAYOUTS: dict[str, Layout] = {
    "zigzag": ZigZag(),
    "striped": Striped(),
    "contiguous": Contiguous(),
}
METHODS = {"ring": ring_attention, "all_gather": all_gather_attention}
IGNORE = -100  # label of a token that does not count


class Batch(NamedTuple):
    """Token ids [B, L] and, for each, the token that follows it or IGNORE."""

    inputs: Tensor
    labels: Tensor


class Log(NamedTuple):
    """Loss and gradient norm of each step, and the parameters in the end."""

    losses: list[float]
    norms: list[float]
    parameters: list[Tensor]


def new_batch(step: int, options: argparse.Namespace, vocabulary: int) -> Batch:
    """Make the batch of a step, the same on every rank; a real one is read, shard by shard.

    Sequences repeat a pattern, and the labels of a first part of each, a prompt, do not count.
    """
    draw = torch.Generator().manual_seed(options.seed + step % 2)
    pattern = torch.randint(vocabulary, (options.sequences, 7), generator=draw)
    tokens = pattern.repeat(1, options.tokens // 7 + 1)[:, : options.tokens]
    labels = tokens.roll(-1, dims=1)  # shifted here, while the sequence is whole
    labels[:, -1] = IGNORE
    prompts = torch.randint(options.tokens // 2 + 1, (options.sequences, 1), generator=draw)
    return Batch(tokens, labels.masked_fill(torch.arange(options.tokens) < prompts, IGNORE))


def new_mesh(options: argparse.Namespace, device: torch.device) -> DeviceMesh:
    """Arrange all ranks in rows of CP ranks that share their sequences."""
    world_size = dist.get_world_size()
    cp = world_size if options.cp is None else options.cp
    if cp < 1 or world_size % cp or options.sequences < world_size // cp:
        raise SystemExit(
            f"{world_size} ranks and {options.sequences} sequences do not make rows of --cp {cp} "
            "ranks with a sequence each; choose a --cp that divides the ranks, or more --sequences"
        )
    return init_device_mesh(device.type, (world_size // cp, cp), mesh_dim_names=("dp", "cp"))


def shard(batch: Batch, mesh: DeviceMesh, layout: Layout, device: torch.device) -> Batch:
    """Cut out the sequences of this rank's row, and of these the tokens of this rank."""
    row, column = mesh.get_local_rank("dp"), mesh.get_local_rank("cp")
    rows, columns = mesh.shape
    mine = (x.tensor_split(rows)[row] for x in batch)
    return Batch(*(layout.shard(x, column, columns, dim=1).to(device) for x in mine))


def loss_share(logits: Tensor, labels: Tensor) -> Tensor:
    """Give this rank's share of the loss: summed over all ranks it is the mean over tokens."""
    count = (labels != IGNORE).sum()
    dist.all_reduce(count)  # ranks hold different numbers of tokens that count
    total = cross_entropy(
        logits.flatten(0, 1), labels.flatten(), ignore_index=IGNORE, reduction="sum"
    )
    return total / count


def sum_over_ranks(model: nn.Module, loss: Tensor) -> Tensor:
    """Sum gradients over all ranks in place, and the loss, in one collective.

    DDP and FSDP do it for you, but they average: there, multiply the loss by the world size.
    """
    grads = [p.grad for p in model.parameters() if p.grad is not None]
    flat = torch.cat([*(grad.flatten() for grad in grads), loss.reshape(1)])
    dist.all_reduce(flat)
    *sums, total = flat.split([*(grad.numel() for grad in grads), 1])
    for grad, summed in zip(grads, sums, strict=True):
        grad.copy_(summed.view_as(grad))
    return total


def train(options: argparse.Namespace, device: torch.device) -> Log:
    """Train on all ranks of the default group."""
    mesh = new_mesh(options, device)
    group, column, columns = mesh["cp"].get_group(), mesh.get_local_rank("cp"), mesh["cp"].size()
    layout, method = LAYOUTS[options.layout], METHODS[options.method]
    positions = layout.positions(column, columns, options.tokens, device=device)

    def attention(_: int, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        return method(q, k, v, layout=layout, causal=True, length=options.tokens, group=group)

    config = Config()
    model = new_decoder(config, options.seed, device, getattr(torch, options.dtype))
    optimizer = torch.optim.AdamW(model.parameters(), lr=options.lr)
    log = Log([], [], list(model.parameters()))
    for step in range(options.steps):
        batch = shard(new_batch(step, options, config.vocabulary), mesh, layout, device)
        loss = loss_share(model(batch.inputs, positions, attention), batch.labels)
        loss.backward()
        total = sum_over_ranks(model, loss.detach())
        norm = nn.utils.clip_grad_norm_(model.parameters(), 1.0)  # after the sum
        optimizer.step()
        optimizer.zero_grad()

        log.losses.append(total.item())
        log.norms.append(norm.item())
        if dist.get_rank() == 0:
            print(f"step {step}: loss {total.item():.6f}, gradient norm {norm.item():.6f}")
    return log


def train_alone(options: argparse.Namespace, device: torch.device) -> Log:
    """Train the same model on the same batches on one device, without any rank."""
    config = Config()
    model = new_decoder(config, options.seed, device, getattr(torch, options.dtype))
    optimizer = torch.optim.AdamW(model.parameters(), lr=options.lr)
    positions = torch.arange(options.tokens, device=device)
    log = Log([], [], list(model.parameters()))
    for step in range(options.steps):
        inputs, labels = (x.to(device) for x in new_batch(step, options, config.vocabulary))
        logits = model(inputs, positions, one_device)
        loss = cross_entropy(logits.flatten(0, 1), labels.flatten(), ignore_index=IGNORE)
        loss.backward()
        log.losses.append(loss.item())
        log.norms.append(nn.utils.clip_grad_norm_(model.parameters(), 1.0).item())
        optimizer.step()
        optimizer.zero_grad()
    return log


@torch.no_grad()
def check(found: Log, expected: Log) -> None:
    """Compare with one device and exit with an error if they differ by more than rounding."""
    bound = 1e-9 if found.parameters[0].dtype == torch.float64 else 1e-3
    errors = {
        name: max(abs(a - b) / b for a, b in zip(mine, theirs, strict=True))
        for name, mine, theirs in (
            ("losses", found.losses, expected.losses),
            ("gradient norms", found.norms, expected.norms),
        )
    }
    mine, theirs = (torch.cat([p.flatten() for p in log.parameters]) for log in (found, expected))
    errors["parameters"] = ((mine - theirs).norm() / theirs.norm()).item()
    print("against one device:", ", ".join(f"{k} differ by {v:.1e}" for k, v in errors.items()))
    if not all(error < bound for error in errors.values()):
        raise SystemExit(f"the ranks do not train what one device trains (bound {bound})")


def arguments(given: list[str] | None = None) -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--steps", type=int, default=10)
    parser.add_argument("--tokens", type=int, default=256, help="of a sequence, 8 or more")
    parser.add_argument("--sequences", type=int, default=4, help="in a batch")
    parser.add_argument("--layout", choices=LAYOUTS, default="zigzag")
    parser.add_argument("--method", choices=METHODS, default="ring")
    parser.add_argument("--cp", type=int, help="ranks that share a sequence; all by default")
    parser.add_argument("--dtype", choices=["float32", "float64"], default="float32")
    parser.add_argument("--lr", type=float, default=3e-3)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--check", action="store_true", help="compare with one device")
    options = parser.parse_args(given)
    if options.steps < 1 or options.tokens < 8:
        parser.error("take at least 1 step and sequences of at least 8 tokens")
    return options


def main() -> None:
    """Train as the command line says."""
    options = arguments()
    device = join()
    try:
        log = train(options, device)
        if options.check and dist.get_rank() == 0:
            check(log, train_alone(options, device))
        dist.barrier()
    finally:
        dist.destroy_process_group()


if __name__ == "__main__":
    main()
