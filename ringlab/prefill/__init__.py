"""Attention over a sequence that is sharded over ranks: one file a method."""

from ringlab.calls.support import Feature
from ringlab.prefill.all_gather import all_gather_attention
from ringlab.prefill.ring import ring_attention
from ringlab.prefill.support import SUPPORT

__all__ = ["SUPPORT", "Feature", "all_gather_attention", "ring_attention"]
