"""Rows that the tables of support of all calls share: what none of them supports."""

from __future__ import annotations

from ringlab.calls.support import Feature

DROPOUT = Feature(
    "dropout", "refused", "apply dropout outside of attention.", ("dropout_p", "dropout")
)

SCORES = (
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
)
"""Changes of the scores, or of their softmax."""

TRANSFORMS = Feature(
    "vmap and other torch.func transforms", "refused", "use the batch dimension B."
)

TENSORS = (
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
"""Kinds and shapes of tensors."""
