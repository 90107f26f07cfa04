"""What the prefill methods can do, as data.

`SUPPORT` is the one table: the README prints it and the tests walk it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True)
class Feature:
    """One line of the table.

    Attributes
    ----------
    name : str
    status : {"supported", "refused"}
    note : str
        How it is supported, or what to use instead.
    arguments : tuple of str
        The names under which other libraries ask for a refused feature.
    """

    name: str
    status: Literal["supported", "refused"]
    note: str
    arguments: tuple[str, ...] = ()


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
    Feature("dropout", "refused", "apply dropout outside of attention.", ("dropout_p", "dropout")),
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
    Feature(
        "attention sinks",
        "refused",
        "use one device; a sink must be counted once over all ranks.",
        ("sinks", "s_aux"),
    ),
    Feature(
        "score bias (ALiBi)",
        "refused",
        "use RoPE (ringlab.rope) for positions.",
        ("bias", "attn_bias", "alibi_slopes"),
    ),
    Feature(
        "soft-capped scores",
        "refused",
        "use one device; no kernel of ringlab caps scores.",
        ("softcap", "logit_softcapping"),
    ),
    Feature("double backward", "refused", "use one device for higher derivatives."),
    Feature("forward-mode derivatives", "refused", "use backward()."),
    Feature("vmap and other torch.func transforms", "refused", "use the batch dimension B."),
    Feature(
        "cross-attention (Lq != Lk)",
        "refused",
        "pass q, k and v of the same tokens; queries and keys are one sequence.",
    ),
    Feature(
        "values of another width than keys",
        "refused",
        "pad V with zeros to the width of K and cut the output.",
    ),
    Feature(
        "DTensor, nested and sparse tensors",
        "refused",
        "pass dense local tensors: x.to_local(), or padded.",
    ),
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


def refused(feature: str, method: str, given: str = "") -> NotImplementedError:
    """Make the error that refuses a feature of the table, named as in the table.

    Parameters
    ----------
    feature : str
        The name of a refused row.
    method : str
        The function that was called.
    given : str
        What was passed.
    """
    row = next(row for row in SUPPORT if row.name == feature and row.status == "refused")
    what = f" ({given})" if given else ""
    return NotImplementedError(f"{method} does not support {row.name}{what}: {row.note}")


def unknown_argument(method: str, name: str) -> Exception:
    """Make the error for an argument that the methods do not have."""
    for row in SUPPORT:
        if name in row.arguments:
            return refused(row.name, method, f"{name}=")
    hint = f" It is called {RENAMED[name]} here." if name in RENAMED else ""
    return TypeError(f"{method} has no argument {name!r}.{hint}")
