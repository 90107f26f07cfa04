"""Exercises of lesson 03, The ring."""

NAMES = (
    "rotation_table",
    "ring_forward",
    "ring_overlap",
    "group_safe_ring",
    "ragged_shards",
    "ring_backward",
)
