"""Exercises of lesson 00, Ranks, messages, deadlocks."""

NAMES = ("swap", "deadlock_in", "ring_of_sums", "my_peers")
