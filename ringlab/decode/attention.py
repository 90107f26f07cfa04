"""Attention of new tokens to a sharded KV cache."""

from __future__ import annotations

import math
from typing import Literal, get_args

from torch import Tensor

from ringlab.calls.autocast import autocast
from ringlab.calls.checks import check_plain
from ringlab.calls.entry import entry
from ringlab.decode import all_gather, ring, split_k
from ringlab.decode.cache import ShardedKVCache
from ringlab.decode.checks import check_query
from ringlab.decode.partial import Query, combine
from ringlab.decode.support import DECODE
from ringlab.numerics.dtypes import accumulation_dtype

Method = Literal["split_k", "all_gather", "ring"]

_PARTS = {"split_k": split_k.parts, "all_gather": all_gather.parts, "ring": ring.parts}


@entry(DECODE)
def decode_attention(
    q: Tensor,
    cache: ShardedKVCache,
    *,
    method: Method = "split_k",
    scale: float | None = None,
    kernel: str | None = None,
) -> Tensor:
    """Attention of the last n tokens of a sequence to all that the ranks hold of it.

    The keys and values of the n tokens must be in the cache already. Query i stands at
    position ``cache.length - n + i`` and sees exactly the tokens up to there.

    Parameters
    ----------
    q : Tensor
        [B, Hq, n, D], the same on every rank, Hq a multiple of the cache's Hkv; the dtype and
        device of the cache, any strides. With rotary embeddings, rotated by those positions.
    cache : ShardedKVCache
        Of one layer; its group is the group of the call.
    method : {"split_k", "all_gather", "ring"}
        What travels: partial results, or keys and values in one piece or in hops. All three
        give the same numbers; the last two exist to be measured.
    scale : float, optional
        Positive factor on the scores; 1 / sqrt(D) by default.
    kernel : str, optional
        What computes a part, one of ``ringlab.numerics.available_kernels()``; by default the
        fastest that fits. ``"reference"`` keeps partial results of 16-bit inputs in float32.

    Returns
    -------
    Tensor
        [B, Hq, n, D] in the dtype of q, equal to the last bit on every rank, so that ranks
        that pick the likeliest token pick the same one.

    Raises
    ------
    ValueError, TypeError, RuntimeError, NotImplementedError
        If the inputs do not fit or something is asked for that is not supported; raised
        before anything is sent.

    Notes
    -----
    With L tokens in the cache a rank sends, for each layer,

    * split_k: ``(W-1)·B·Hq·n·(D+1)·4`` bytes in one all-gather, whatever L is (8 instead of
      4 in float64);
    * all_gather, ring: ``(W-1)`` times the K and V of one rank, 2·B·Hkv·(L/W)·D·itemsize,
      in one all-gather (shorter parts are padded) or in W-1 hops.

    Split-K packs out and LSE of a part into one message. Two all-reduces, of the maximum and
    of the weighted sums, would send ``2·(W-1)/W`` instead of W-1 such payloads, less from
    W = 3 on, but a payload is some ten kilobytes, and each of them takes 2·(W-1) steps in a
    ring: where latency is what costs, one collective wins. With large batches over many ranks
    the payload would count, and a reduce-scatter over heads would be the better choice.

    References
    ----------
    Dao et al., Flash-Decoding (pytorch.org/blog/flash-decoding, 2023), on one GPU; Shyam et
    al., Tree Attention, arXiv:2408.04093; the decode context parallelism of vLLM
    (github.com/vllm-project/vllm).
    """
    name = "decode_attention"
    if not isinstance(cache, ShardedKVCache):
        raise TypeError(f"{name}: cache is a ShardedKVCache; got a {type(cache).__name__}.")
    if method not in get_args(Method):
        raise ValueError(f"{name}: method is one of {', '.join(_PARTS)}; got {method!r}.")
    check_plain(name, DECODE, q=q)
    (q,) = autocast(q)
    check_query(name, q, cache, scale, kernel)
    batch, heads, count, head_dim = q.shape
    folded = (batch, cache.kv_heads, heads // cache.kv_heads * count, head_dim)
    query = Query(
        folded=q.reshape(folded),
        count=count,
        length=cache.length,
        layout=cache.layout,
        world_size=cache.world_size,
        scale=1.0 / math.sqrt(head_dim) if scale is None else float(scale),
        kernel=kernel,
    )
    if q.numel() == 0 or cache.world_size == 1:
        out = query.attend(cache.keys, cache.values, cache.rank).out
    else:
        packed = _PARTS[method](query, cache, accumulation_dtype(q.dtype))
        out = combine(packed, head_dim)
    return out.reshape(q.shape).to(q.dtype)
