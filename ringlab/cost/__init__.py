"""What attention over many ranks costs, in closed form, before anything runs.

The formulas count the bytes of each message from the sizes of the shards alone. Tests hold
them, rank by rank and hop by hop, against the timelines of runs.
"""

from ringlab.cost.decode import (
    Decode,
    cache_load,
    decode_all_gather,
    decode_ring,
    decode_split_k,
)
from ringlab.cost.prefill import (
    Prefill,
    all_gather_backward,
    all_gather_forward,
    ring_backward,
    ring_forward,
)
from ringlab.cost.traffic import Message, Traffic, handshake

__all__ = [
    "Decode",
    "Message",
    "Prefill",
    "Traffic",
    "all_gather_backward",
    "all_gather_forward",
    "cache_load",
    "decode_all_gather",
    "decode_ring",
    "decode_split_k",
    "handshake",
    "ring_backward",
    "ring_forward",
]
