"""Exercises of lesson 04, Causal skipping."""

NAMES = ("classify_tile", "causal_ring", "early_stop")
