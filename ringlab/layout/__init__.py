"""Which token lives on which rank, and the work that follows from it."""

from ringlab.layout.layout import Layout
from ringlab.layout.layouts import Contiguous, Interleaved, Striped, ZigZag
from ringlab.layout.runs import Run

__all__ = ["Contiguous", "Interleaved", "Layout", "Run", "Striped", "ZigZag"]
