"""KV-cache arithmetic: what a model's weights and cache take on each rank, in exact bytes."""

from ringlab.memory.attention import GroupedQuery, Latent
from ringlab.memory.catalog import MODELS
from ringlab.memory.deployment import Deployment, Place
from ringlab.memory.dtypes import DTYPES
from ringlab.memory.feed_forward import Dense, Experts
from ringlab.memory.flops import attention_flops, attention_overtakes, linear_flops
from ringlab.memory.model import Model
from ringlab.memory.units import GB, GIB, KB, KIB, MB, MIB, TB, TIB, binary, both, decimal, parse
from ringlab.memory.workspace import blocks_held, prefill_workspace, score_bytes

__all__ = [
    "DTYPES",
    "GB",
    "GIB",
    "KB",
    "KIB",
    "MB",
    "MIB",
    "MODELS",
    "TB",
    "TIB",
    "Dense",
    "Deployment",
    "Experts",
    "GroupedQuery",
    "Latent",
    "Model",
    "Place",
    "attention_flops",
    "attention_overtakes",
    "binary",
    "blocks_held",
    "both",
    "decimal",
    "linear_flops",
    "parse",
    "prefill_workspace",
    "score_bytes",
]
