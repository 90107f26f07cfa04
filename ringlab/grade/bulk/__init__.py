"""Grading the notebooks of a class."""
