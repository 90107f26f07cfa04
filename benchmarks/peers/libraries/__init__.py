"""The libraries that are compared, a file each."""

from __future__ import annotations

from benchmarks.peers.libraries import (
    jax_ring,
    lucidrains,
    ours,
    pytorch,
    ringmaster_ring,
    single,
    yunchang_ring,
)
from benchmarks.peers.peer import Factory

FACTORIES: tuple[Factory, ...] = (
    single.OneProcess,
    ours.Ringlab,
    pytorch.WithCpuOperator,
    pytorch.AsShipped,
    yunchang_ring.WithCpuOperator,
    yunchang_ring.AsShipped,
    ringmaster_ring.Ringmaster,
    jax_ring.RingAttentionJax,
    lucidrains.RingAttentionPytorch,
)
