"""Attention over many ranks: context parallelism as a library and as a course.

The public names are imported when they are first used, so that ``ringlab doctor`` can
speak even where torch is missing or broken.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

__version__ = "0.1.0"

if TYPE_CHECKING:
    from ringlab.decode import ShardedKVCache as ShardedKVCache
    from ringlab.decode import decode_attention as decode_attention
    from ringlab.layout import Contiguous as Contiguous
    from ringlab.layout import Interleaved as Interleaved
    from ringlab.layout import Layout as Layout
    from ringlab.layout import Striped as Striped
    from ringlab.layout import ZigZag as ZigZag
    from ringlab.memory import MODELS as MODELS
    from ringlab.memory import Deployment as Deployment
    from ringlab.numerics import AttentionState as AttentionState
    from ringlab.numerics import attend as attend
    from ringlab.numerics import attend_backward as attend_backward
    from ringlab.prefill import all_gather_attention as all_gather_attention
    from ringlab.prefill import ring_attention as ring_attention
    from ringlab.rope import apply_rope as apply_rope
    from ringlab.timeline import Timeline as Timeline
    from ringlab.world import Deadlock as Deadlock
    from ringlab.world import RankFailed as RankFailed
    from ringlab.world import World as World
    from ringlab.world import WorldError as WorldError

_HOMES = {
    "AttentionState": "ringlab.numerics",
    "Contiguous": "ringlab.layout",
    "Deadlock": "ringlab.world",
    "Deployment": "ringlab.memory",
    "Interleaved": "ringlab.layout",
    "Layout": "ringlab.layout",
    "MODELS": "ringlab.memory",
    "RankFailed": "ringlab.world",
    "ShardedKVCache": "ringlab.decode",
    "Striped": "ringlab.layout",
    "Timeline": "ringlab.timeline",
    "World": "ringlab.world",
    "WorldError": "ringlab.world",
    "ZigZag": "ringlab.layout",
    "all_gather_attention": "ringlab.prefill",
    "apply_rope": "ringlab.rope",
    "attend": "ringlab.numerics",
    "attend_backward": "ringlab.numerics",
    "decode_attention": "ringlab.decode",
    "ring_attention": "ringlab.prefill",
}

__all__ = ["__version__", *_HOMES]


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module 'ringlab' has no attribute {name!r}")
    value = getattr(importlib.import_module(_HOMES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
