"""Exercises of lesson 01, KV-memory arithmetic."""

NAMES = ("kv_bytes", "longest_context", "attention_overtakes")
