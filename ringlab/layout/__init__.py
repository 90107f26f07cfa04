"""Which token lives on which rank, and the work that follows from it."""

from ringlab.layout.layouts import Contiguous, Interleaved, Layout, Striped, ZigZag
from ringlab.layout.runs import Run

__all__ = ["Contiguous", "Interleaved", "Layout", "Run", "Striped", "ZigZag"]
