"""What the prefill methods can do, as data.

`SUPPORT` is the one table: the README prints it and the tests walk it.
"""

from __future__ import annotations

from ringlab.calls.refusals import DROPOUT, SCORES, TENSORS, TRANSFORMS
from ringlab.calls.support import Feature, Support

SUPPORT: tuple[Feature, ...] = (
    Feature("forward and backward", "supported", "gradients of q, k and v on every rank"),
    Feature("causal and bidirectional", "supported", "tiles and hops nobody needs are skipped"),
    Feature("every layout", "supported", "Contiguous, ZigZag, Striped, Interleaved, your own"),
    Feature("any length", "supported", "no divisibility; ranks may own nothing"),
    Feature("GQA and MQA", "supported", "K and V travel unexpanded"),
    Feature("float32, float64, bfloat16, float16", "supported", "accumulated in fp32 (fp64)"),
    Feature("CPU, CUDA and meta tensors", "supported", "meta: shapes and bytes, no data"),
    Feature("sub-groups", "supported", "group=, any ranks in any order"),
    Feature("batches and strided inputs", "supported", "[B, H, L, D] with any strides"),
    Feature("a kernel of choice", "supported", "kernel=, one of available_kernels()"),
    Feature("activation checkpointing", "supported", "reentrant and not"),
    Feature("autocast", "supported", "inputs are cast as SDPA casts them"),
    Feature("inference_mode, no_grad", "supported", "nothing is saved"),
    Feature("torch.compile", "supported", "with one graph break around the call; no fullgraph"),
    Feature(
        "DDP and FSDP2",
        "supported",
        "both average over ranks: multiply a loss that is a sum over the rank's tokens by W",
    ),
    DROPOUT,
    Feature(
        "arbitrary masks",
        "refused",
        "use causal=True, or one device with scaled_dot_product_attention.",
        ("attn_mask", "mask", "attention_mask", "key_padding_mask", "block_mask"),
    ),
    Feature(
        "sliding windows",
        "refused",
        "use one device with a mask; a window needs other hops than a ring.",
        ("window_size", "window", "sliding_window"),
    ),
    Feature(
        "packed documents",
        "refused",
        "pass each document as a sequence of its own.",
        ("cu_seqlens", "cu_seqlens_q", "cu_seqlens_k", "document_ids"),
    ),
    *SCORES,
    Feature("double backward", "refused", "use one device for higher derivatives."),
    Feature("forward-mode derivatives", "refused", "use backward()."),
    TRANSFORMS,
    Feature(
        "cross-attention (Lq != Lk)",
        "refused",
        "pass q, k and v of the same tokens; queries and keys are one sequence.",
    ),
    *TENSORS,
)

RENAMED = {
    "is_causal": "causal",
    "softmax_scale": "scale",
    "sm_scale": "scale",
    "process_group": "group",
    "pg": "group",
    "cp_group": "group",
    "mesh": "group=mesh.get_group()",
    "seq_len": "length",
    "backend": "kernel",
}
"""What users of other libraries may write, and what it is called here."""

PREFILL = Support(SUPPORT, RENAMED)
