"""Exercises of lesson 05, Zig-zag and striped balancing."""

NAMES = (
    "balance_counts",
    "zigzag_positions",
    "unzigzag",
    "striped_mask",
    "zigzag_ring",
    "overlap_threshold",
)
