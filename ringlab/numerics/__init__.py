"""What one rank computes: attention over blocks, and the merging of their results.

Nothing here communicates.
"""

from ringlab.numerics.block import attend, attend_backward
from ringlab.numerics.flops import attend_backward_flops, attend_flops
from ringlab.numerics.kernels import KernelReport, available_kernels
from ringlab.numerics.state import AttentionState

__all__ = [
    "AttentionState",
    "KernelReport",
    "attend",
    "attend_backward",
    "attend_backward_flops",
    "attend_flops",
    "available_kernels",
]
