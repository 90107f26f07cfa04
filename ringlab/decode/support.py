"""What decode over ranks can do, as data.

`SUPPORT` is the one table: the README prints it and the tests walk it.
"""

from __future__ import annotations

from ringlab.calls.refusals import DROPOUT, SCORES, TENSORS, TRANSFORMS
from ringlab.calls.support import Feature, Support

SUPPORT: tuple[Feature, ...] = (
    Feature("any length", "supported", "no divisibility; ranks may own nothing"),
    Feature("several new tokens at once", "supported", "each sees exactly its own past"),
    Feature("prompts prefilled in any layout", "supported", "cache.load(k, v, layout=...)"),
    Feature("rejected drafts and a second turn", "supported", "cache.truncate, append, load"),
    Feature("GQA and MQA", "supported", "K and V are read once for all heads that share them"),
    Feature("float32, float64, bfloat16, float16", "supported", "accumulated in fp32 (fp64)"),
    Feature("CPU, CUDA and meta tensors", "supported", "meta: shapes and bytes, no data"),
    Feature("sub-groups", "supported", "ShardedKVCache(group=), any ranks in any order"),
    Feature("batches and strided inputs", "supported", "[B, H, n, D] with any strides"),
    Feature("a kernel of choice", "supported", "kernel=, one of available_kernels()"),
    Feature("autocast", "supported", "inputs are cast as SDPA casts them"),
    Feature("inference_mode, no_grad", "supported", "a cache may be used in both by turns"),
    Feature("torch.compile", "supported", "with one graph break around each call; no fullgraph"),
    Feature(
        "gradients",
        "refused",
        "decode under torch.inference_mode() or torch.no_grad(); to train use ring_attention.",
    ),
    Feature(
        "layouts whose owners change with the length",
        "refused",
        "use Interleaved(block) for the cache; a prompt may come from any layout by cache.load.",
    ),
    DROPOUT,
    Feature(
        "bidirectional attention",
        "refused",
        "decode is causal: a new token sees itself and what was before it.",
        ("causal", "is_causal"),
    ),
    Feature(
        "arbitrary masks and sequences of different lengths in a batch",
        "refused",
        "use one cache a sequence.",
        ("attn_mask", "mask", "attention_mask", "key_padding_mask", "seqlens", "cache_seqlens"),
    ),
    Feature(
        "sliding windows",
        "refused",
        "use one device with a mask; most ranks would hold nothing of a window.",
        ("window_size", "window", "sliding_window"),
    ),
    Feature(
        "paged caches",
        "refused",
        "use one ShardedKVCache a sequence; truncate and reset keep its memory.",
        ("block_table", "page_table", "block_tables"),
    ),
    *SCORES,
    Feature("forward-mode derivatives", "refused", "to train use ring_attention and backward()."),
    TRANSFORMS,
    *TENSORS,
)

RENAMED = {
    "softmax_scale": "scale",
    "sm_scale": "scale",
    "k_cache": "cache",
    "v_cache": "cache",
    "kv_cache": "cache",
    "past_key_values": "cache",
    "backend": "kernel",
    "group": "ShardedKVCache(group=)",
    "process_group": "ShardedKVCache(group=)",
    "cp_group": "ShardedKVCache(group=)",
    "length": "cache.length",
}
"""What users of other libraries may write, and what it is called here."""

DECODE = Support(SUPPORT, RENAMED)
