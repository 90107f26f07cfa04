"""What a prefill over CP ranks holds for a moment beside weights and cache."""

from __future__ import annotations

from typing import Literal

from ringlab.memory.deployment import Deployment

Method = Literal["ring", "all_gather"]


def blocks_held(method: Method, cp: int) -> int:
    """Count the blocks of K and V, each of one rank's tokens, that a method needs at one time.

    Parameters
    ----------
    method : {"ring", "all_gather"}
    cp : int
        Ranks that share the sequence.

    Returns
    -------
    int
        The rank's own block included, which the ring can send from where it lies: its own, the
        one at hand and the one that comes, so ``min(cp, 3)``. An all-gather holds all `cp`.
    """
    _check(method)
    return min(cp, 3) if method == "ring" else cp


def prefill_workspace(
    deployment: Deployment, method: Method, length: int, sequences: int = 1
) -> int:
    """Bytes of K and V that `ring_attention` or `all_gather_attention` make while they run.

    One layer at a time: its workspace is free again when the next begins. Both pack the rank's
    own K and V into a buffer first. The ring then holds two blocks, whatever the number of
    ranks; the all-gather holds its packed block and those of all ranks.

    Parameters
    ----------
    deployment : Deployment
    method : {"ring", "all_gather"}
    length : int
        Tokens of each sequence.
    sequences : int
        Sequences in all replicas together.

    Returns
    -------
    int
        On the rank with most; 0 with one CP rank.
    """
    _check(method)
    if deployment.cp == 1:
        return 0
    cached = deployment.model.attention.cached(deployment.tp) * deployment.kv_dtype.itemsize
    block = deployment.sequences(0, sequences) * deployment.longest_shard(length) * cached
    return block * (2 if method == "ring" else deployment.cp + 1)


def score_bytes(deployment: Deployment, length: int, sequences: int = 1) -> int:
    """Bytes of one float32 matrix of scores, [B, Hq, L_rank, L_rank], which no kernel here makes.

    It is what attention without tiles writes for every block that it meets, of one layer, on
    the rank with most tokens.

    Parameters
    ----------
    deployment : Deployment
    length : int
        Tokens of each sequence.
    sequences : int
        Sequences in all replicas together.
    """
    heads = deployment.model.attention.heads // deployment.tp
    tokens = deployment.longest_shard(length)
    return 4 * deployment.sequences(0, sequences) * heads * tokens * tokens


def _check(method: str) -> None:
    if method not in ("ring", "all_gather"):
        raise ValueError(f"method {method!r} is unknown; choose 'ring' or 'all_gather'.")
