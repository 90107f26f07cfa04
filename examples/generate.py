"""Generate tokens from prompts that are sharded over ranks.

    torchrun --standalone --nproc-per-node=4 examples/generate.py --check

Every rank holds the weights and a part of each sequence.

* Prefill: each rank computes its shard of the prompt in the zig-zag layout, which balances the
  causal work, by ring attention.
* The keys and values then move into the sharded cache, one a layer, where token i lives on rank
  i % W, so that the cache grows evenly and no token ever moves again.
* Decode: each rank computes the new token; its keys and values go into the cache of one rank, and
  its attention is merged from the parts of all ranks. The result has the same bits on every
  rank, so all pick the same token and need not tell each other.
"""

from __future__ import annotations

import argparse
from typing import Literal, NamedTuple, get_args

import torch
import torch.distributed as dist
from launch import join
from model import Config, Decoder, new_decoder, one_device
from torch import Tensor

from ringlab import ShardedKVCache, ZigZag, decode_attention, ring_attention

Method = Literal["split_k", "all_gather", "ring"]
METHODS: tuple[Method, ...] = get_args(Method)
LAYOUT = ZigZag()


class Generated(NamedTuple):
    """The new tokens [B, N], and the logits [B, N, V] of which each was the largest."""

    tokens: Tensor
    logits: Tensor


def new_prompts(options: argparse.Namespace, vocabulary: int) -> Tensor:
    """Make prompts [B, L], the same on every rank; real ones are read, shard by shard."""
    draw = torch.Generator().manual_seed(options.seed)
    return torch.randint(vocabulary, (options.sequences, options.prompt_tokens), generator=draw)


def new_caches(options: argparse.Namespace, config: Config, model: Decoder) -> list[ShardedKVCache]:
    """Make an empty cache for each layer; every rank has room for its share of all tokens."""
    like = model.embedding.weight
    return [
        ShardedKVCache(
            options.sequences,
            config.kv_heads,
            config.head_dim,
            capacity=options.prompt_tokens + options.new_tokens,
            dtype=like.dtype,
            device=like.device,
        )
        for _ in range(config.layers)
    ]


def prefill(model: Decoder, prompts: Tensor, caches: list[ShardedKVCache]) -> Tensor:
    """Fill the caches with prompts [B, L] and give the logits of the token that follows, [B, V]."""
    rank, world_size, length = dist.get_rank(), dist.get_world_size(), prompts.shape[1]
    device = model.embedding.weight.device

    def attention(layer: int, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        caches[layer].load(k, v, layout=LAYOUT, length=length)
        return ring_attention(q, k, v, layout=LAYOUT, causal=True, length=length)

    mine = LAYOUT.shard(prompts, rank, world_size, dim=1).to(device)
    positions = LAYOUT.positions(rank, world_size, length, device=device)
    logits = model(mine, positions, attention)

    # Only one rank holds the prompt's last token; in every layout it is that rank's last.
    owner = LAYOUT.owner(length - 1, world_size, length)
    last = logits.new_empty(prompts.shape[0], logits.shape[-1])
    if rank == owner:
        last.copy_(logits[:, -1])
    dist.broadcast(last, src=owner)
    return last


def decode(model: Decoder, token: Tensor, caches: list[ShardedKVCache], method: Method) -> Tensor:
    """Give the logits [B, V] of the token that follows `token` [B], which enters the caches."""

    def attention(layer: int, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        caches[layer].append(k, v)  # sends nothing: all ranks have k and v, the owner keeps them
        return decode_attention(q, caches[layer], method=method)

    position = torch.tensor([caches[0].length], device=token.device)
    return model(token[:, None], position, attention)[:, -1]


@torch.inference_mode()
def generate(options: argparse.Namespace, device: torch.device) -> Generated:
    """Generate on all ranks of the default group; every rank gets the same."""
    config = Config()
    model = new_decoder(config, options.seed, device, getattr(torch, options.dtype))
    caches = new_caches(options, config, model)
    logits = [prefill(model, new_prompts(options, config.vocabulary), caches)]
    while len(logits) < options.new_tokens:
        logits.append(decode(model, logits[-1].argmax(dim=-1), caches, options.method))
    stacked = torch.stack(logits, dim=1)
    return Generated(stacked.argmax(dim=-1), stacked)


@torch.inference_mode()
def generate_alone(options: argparse.Namespace, device: torch.device) -> Generated:
    """Generate the same on one device, without a cache: each token from the whole sequence."""
    config = Config()
    model = new_decoder(config, options.seed, device, getattr(torch, options.dtype))
    tokens = new_prompts(options, config.vocabulary).to(device)
    logits = []
    for _ in range(options.new_tokens):
        positions = torch.arange(tokens.shape[1], device=device)
        logits.append(model(tokens, positions, one_device)[:, -1])
        tokens = torch.cat((tokens, logits[-1].argmax(dim=-1, keepdim=True)), dim=1)
    return Generated(tokens[:, options.prompt_tokens :], torch.stack(logits, dim=1))


def check(found: Generated, expected: Generated) -> None:
    """Compare with one device and exit with an error if they differ by more than rounding."""
    bound = 1e-9 if found.logits.dtype == torch.float64 else 1e-3
    same = int((found.tokens == expected.tokens).sum())
    worst = (found.logits - expected.logits).abs().max().item()
    total = found.tokens.numel()
    print(
        f"against one device: {same} of {total} tokens are the same, logits differ by {worst:.1e}"
    )
    if same < total or not worst < bound:
        raise SystemExit(f"the ranks do not generate what one device generates (bound {bound})")


def arguments(given: list[str] | None = None) -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--prompt-tokens", type=int, default=256, help="of a prompt; any number")
    parser.add_argument("--new-tokens", type=int, default=32)
    parser.add_argument("--sequences", type=int, default=2, help="in the batch")
    parser.add_argument("--method", choices=METHODS, default="split_k", help="of decode")
    parser.add_argument("--dtype", choices=["float32", "float64"], default="float32")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--check", action="store_true", help="compare with one device")
    options = parser.parse_args(given)
    if min(options.prompt_tokens, options.new_tokens, options.sequences) < 1:
        parser.error("take at least 1 prompt token, 1 new token and 1 sequence")
    return options


def main() -> None:
    """Generate as the command line says."""
    options = arguments()
    device = join()
    try:
        found = generate(options, device)
        if dist.get_rank() == 0:
            print("\n".join(" ".join(map(str, row)) for row in found.tokens.tolist()))
            if options.check:
                check(found, generate_alone(options, device))
        dist.barrier()
    finally:
        dist.destroy_process_group()


if __name__ == "__main__":
    main()
