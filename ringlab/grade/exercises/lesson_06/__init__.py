"""Exercises of lesson 06, Decode."""

NAMES = ("merge_parts", "split_k_decode", "split_k_from", "cache_owner", "choose_method")
