"""Decode over ranks: the sharded KV cache and attention to it; one file a method."""

from ringlab.calls.support import Feature
from ringlab.decode.attention import decode_attention
from ringlab.decode.cache import ShardedKVCache
from ringlab.decode.support import SUPPORT

__all__ = ["SUPPORT", "Feature", "ShardedKVCache", "decode_attention"]
