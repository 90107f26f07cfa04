"""ringattention for JAX, on two devices that XLA makes of one process's cores."""

from __future__ import annotations

import os
import types
from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from torch import Tensor

from benchmarks.peers.peer import BOTH, FORWARD, Peer, Step
from benchmarks.peers.problem import RESULTS, Problem
from ringlab.bench.readings import Stopwatch

DEVICES = 2
CHUNK = 512  # tokens of a block of its loop


class RingAttentionJax(Peer):
    """Its plain JAX ring, contiguous."""

    name = "ringattention (JAX)"
    package = "ringattention"
    how = (
        "its `ring_attention` under `shard_map`, contiguous, chunks of 512, compiled, on two host "
        "devices of one process that share a pool of threads, so nothing is sent; "
        "`jax.lib.xla_bridge`, which its import asks for, was put back"
    )
    ranks = 1
    threads = 2
    counted = False

    def __init__(self) -> None:
        self._warm: set[tuple[Problem, str]] = set()
        self._compiled: dict[Problem, tuple[Callable[..., Any], Callable[..., Any]]] = {}

    def start(self) -> None:
        """Make the two devices and import it."""
        os.environ["XLA_FLAGS"] = f"--xla_force_host_platform_device_count={DEVICES}"
        os.environ["JAX_PLATFORMS"] = "cpu"
        import jax

        bridge = types.ModuleType("jax.lib.xla_bridge")
        setattr(bridge, "get_backend", _Backend)  # noqa: B010  a module declares no attributes
        setattr(jax.lib, "xla_bridge", bridge)  # noqa: B010
        import ringattention  # noqa: F401

    def attend(self, problem: Problem, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        """Never called: `step` runs JAX's own arrays."""
        raise NotImplementedError("JAX has no autograd graph of torch")

    def step(self, problem: Problem, shard: tuple[Tensor, ...], backward: bool) -> Step:
        """Run forward, or forward and backward in one compiled function, compiled before."""
        import jax

        given = [_to_jax(x) for x in shard]
        forward, both = self._functions(problem)
        calls = {FORWARD: partial(forward, *given[:3])}
        if backward:
            calls[BOTH] = partial(both, *given)
        readings = {}
        for phase, call in calls.items():
            if (problem, phase) not in self._warm:
                jax.block_until_ready(call())
                self._warm.add((problem, phase))
            with Stopwatch() as watch:
                found = jax.block_until_ready(call())
            readings[phase] = watch.reading
        arrays = found if backward else (found,)
        tensors = {
            name: _to_torch(x) for name, x in zip(RESULTS[: len(arrays)], arrays, strict=True)
        }
        return Step(readings, dict.fromkeys(readings), tensors)

    def _functions(self, problem: Problem) -> tuple[Callable[..., Any], Callable[..., Any]]:
        if problem not in self._compiled:
            self._compiled[problem] = _compile(problem)
        return self._compiled[problem]


class _Backend:
    platform = "cpu"


def _compile(problem: Problem) -> tuple[Callable[..., Any], Callable[..., Any]]:
    import jax
    from jax.sharding import Mesh, PartitionSpec
    from ringattention import ringattention_jax

    chunk = min(CHUNK, problem.length // DEVICES)
    options = {
        "causal_block_size": 1 if problem.causal else None,
        "deterministic": True,
        "dropout_rng": None,
        "attn_pdrop": 0.0,
        "query_chunk_size": chunk,
        "key_chunk_size": chunk,
        "dtype": getattr(jax.numpy, problem.dtype),
        "policy": jax.checkpoint_policies.nothing_saveable,
        "precision": None,
        "prevent_cse": True,
    }
    tokens = PartitionSpec(None, "ring", None, None)
    mesh = Mesh(jax.devices()[:DEVICES], ("ring",))

    @partial(jax.shard_map, mesh=mesh, in_specs=(tokens,) * 3, out_specs=tokens, check_vma=False)
    def attention(q: Any, k: Any, v: Any) -> Any:
        return ringattention_jax(q, k, v, None, None, None, "ring", True, options)

    def both(q: Any, k: Any, v: Any, dout: Any) -> Any:
        out, pullback = jax.vjp(attention, q, k, v)
        return (out, *pullback(dout))

    return jax.jit(attention), jax.jit(both)


def _to_jax(x: Tensor) -> Any:
    import jax.numpy as jnp

    array = jnp.asarray(x.transpose(1, 2).float().numpy())
    return array.astype(jnp.bfloat16) if x.dtype == torch.bfloat16 else array


def _to_torch(array: Any) -> Tensor:
    import jax.numpy as jnp
    import numpy

    return torch.from_numpy(numpy.array(array.astype(jnp.float32))).transpose(1, 2)
