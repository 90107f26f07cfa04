"""Exercises of lesson 02, Online softmax."""

NAMES = ("online_update", "blocked_attention", "total_merge")
