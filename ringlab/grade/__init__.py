"""Exercises: trying an answer, judging what it did, and naming the mistake in it."""

from ringlab.grade.notebook.session import check, hint, points, progress, reset

__all__ = ["check", "hint", "points", "progress", "reset"]
