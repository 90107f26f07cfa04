"""Benchmarks that are not part of the library."""
