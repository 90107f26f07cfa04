"""``ringlab demo``: ring attention on four real ranks, checked, counted and drawn."""

from __future__ import annotations

import sys
import time
from argparse import ArgumentParser
from collections.abc import Sequence
from pathlib import Path

import torch
import torch.distributed as dist
from torch import Tensor

from ringlab.draw import bytes_text, draw_ring
from ringlab.layout import Layout, ZigZag
from ringlab.meter import loopback_bytes
from ringlab.prefill import ring_attention
from ringlab.world import World

HEADS, KV_HEADS, DIM = 8, 2, 64


def attend(
    q: Tensor, k: Tensor, v: Tensor, layout: Layout
) -> tuple[Tensor, int | None, int | None]:
    """One rank's program: shard, attend, and read the loopback counter before and after."""
    rank, world = dist.get_rank(), dist.get_world_size()
    length = q.shape[2]
    q, k, v = (layout.shard(x, rank, world) for x in (q, k, v))
    dist.barrier()
    before = loopback_bytes()
    out = ring_attention(q, k, v, layout=layout, causal=True, length=length)
    dist.barrier()
    return out, before, loopback_bytes()


def reference(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """Causal attention on one device in float64, by the textbook formula."""
    q, k, v = q.double(), *(x.double().repeat_interleave(HEADS // KV_HEADS, 1) for x in (k, v))
    scores = q @ k.mT / DIM**0.5  # [B, H, L, L]
    future = torch.ones(scores.shape[-2:], dtype=torch.bool).triu(1)
    out: Tensor = scores.masked_fill(future, -torch.inf).softmax(-1) @ v
    return out


def main(argv: Sequence[str]) -> int:
    """Run the demonstration.

    Parameters
    ----------
    argv : sequence of str

    Returns
    -------
    int
        0 if the result agrees with float64 and the bytes with the formula, else 1.
    """
    parser = ArgumentParser(prog="ringlab demo", description=__doc__)
    parser.add_argument("--ranks", type=int, default=4, help="how many ranks (default 4)")
    parser.add_argument("--tokens", type=int, default=2048, help="sequence length (default 2048)")
    parser.add_argument("--out", type=Path, default=Path("ring.png"), help="the picture's file")
    options = parser.parse_args(argv)
    if options.ranks < 2 or options.tokens < 1:
        parser.error("a ring needs --ranks of at least 2 and --tokens of at least 1.")
    return _demonstrate(options.ranks, options.tokens, options.out)


def _demonstrate(ranks: int, tokens: int, out: Path) -> int:
    torch.manual_seed(0)
    layout = ZigZag()
    q = torch.randn(1, HEADS, tokens, DIM)
    k, v = torch.randn(2, 1, KV_HEADS, tokens, DIM)
    print(f"Causal attention over {tokens} tokens, {HEADS} query heads and {KV_HEADS} KV heads of "
          f"{DIM}, float32,\nsharded over {ranks} ranks in zig-zag order.\n")  # fmt: skip

    with World(ranks) as virtual:
        virtual.run(attend, q, k, v, layout)
    hops = virtual.timeline.hops(0)
    shards = layout.lengths(ranks, tokens)
    formula = [2 * KV_HEADS * DIM * 4 * shards[-step % ranks] for step in range(ranks - 1)]
    print("Bytes that rank 0 sends, counted in the virtual world:")
    for hop, (count, expected) in enumerate(zip(hops, formula, strict=True), start=1):
        print(f"  hop {hop}: {bytes_text(count):>10}   2 x KV heads x D x 4 x tokens of the block "
              f"= {bytes_text(expected)}")  # fmt: skip

    began = time.perf_counter()
    with World(ranks, backend="gloo") as real:
        results = real.run(attend, q, k, v, layout)
    seconds = time.perf_counter() - began
    result = layout.unshard([out for out, _, _ in results])
    exact = reference(q, k, v)
    error = ((result - exact).norm() / exact.norm()).item()
    sent = sum(real.timeline.bytes_sent(rank) for rank in range(ranks))
    same = all(real.timeline.hops(r) == virtual.timeline.hops(r) for r in range(ranks))
    counters = [count for _, *pair in results for count in pair if count is not None]
    print(f"\nThe same function on {ranks} processes over gloo, started and run in "
          f"{seconds:.1f} s:")  # fmt: skip
    print(f"  error against float64 on one device: {error:.1e} (relative, float32 rounding)")
    print(f"  the same bytes in every hop as in the virtual world: {'yes' if same else 'NO'}")
    if counters:
        wire = max(counters) - min(counters)
        print(f"  bytes on the loopback device: {bytes_text(wire)}; the timeline says "
              f"{bytes_text(sent)} (headers are the difference)")  # fmt: skip
    picture = draw_ring(virtual.timeline).save(out) if ranks <= 12 else None
    if picture is not None:
        print(f"  the ring, drawn from the record of the run: {picture}")
    good = error < 1e-5 and list(hops) == formula and same
    print("\nAll as it should be." if good else "\nThis is not as it should be.")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
