"""One way to run a model's attention on a machine, priced, and what its time is spent on."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from ringlab.decode.attention import Method
from ringlab.layout import Contiguous, Layout, Striped, ZigZag
from ringlab.machine import Machine
from ringlab.memory import GroupedQuery, Model
from ringlab.price import Layers, price_layers
from ringlab.simulation.programs import record_decode, record_prefill
from ringlab.timeline import LostTime, Timeline, lost_time

LAYOUTS: dict[str, Layout] = {
    "contiguous": Contiguous(),
    "zigzag": ZigZag(),
    "striped": Striped(),
}
_FASTER = (1.25, 1.5, 2, 3, 4, 6, 8, 12, 16, 32, 64, 128)
_HIDDEN = 0.01


@dataclass(frozen=True)
class Task:
    """What is to be computed.

    Parameters
    ----------
    model : Model
        With grouped queries; the prefill methods move K and V of such heads.
    tokens : int
        Of one sequence: the prompt, or the cache with the new token.
    dtype : torch.dtype

    Raises
    ------
    ValueError
        If the model caches a latent vector instead, or there is no token.
    """

    model: Model
    tokens: int
    dtype: torch.dtype = torch.bfloat16

    def __post_init__(self) -> None:
        if not isinstance(self.model.attention, GroupedQuery):
            raise ValueError(
                f"{self.model.name} caches a latent vector (MLA), which the methods here do not "
                "move; choose a model with grouped queries, for example 'Llama 3.1 70B'."
            )
        if self.tokens < 1:
            raise ValueError(f"there is at least one token; got {self.tokens}.")

    @property
    def heads(self) -> GroupedQuery:
        """Heads of a layer's attention."""
        assert isinstance(self.model.attention, GroupedQuery)
        return self.model.attention


@dataclass(frozen=True)
class Plan:
    """A way to compute a task, with its price.

    Attributes
    ----------
    name : str
    ranks : int
    machine : Machine
    recording : Timeline
        Of one layer.
    layers : Layers
        The price of all layers.
    lost : LostTime
        Of the first layer.
    """

    name: str
    ranks: int
    machine: Machine
    recording: Timeline
    layers: Layers
    lost: LostTime

    @property
    def seconds(self) -> float:
        """Of all layers."""
        return self.layers.seconds

    @property
    def uses_ring(self) -> bool:
        """Whether K and V go round in hops."""
        return self.name.startswith("ring") and self.ranks > 1

    def hiding(self) -> float | None:
        """How many times as fast the links must be for communication to cost next to nothing.

        Returns
        -------
        float or None
            1 where it costs less than 1 % already; None if latency remains whatever the links.
        """
        for factor in (1, *_FASTER):
            machine = self.machine.faster(links=factor)
            lost = lost_time(price_layers(self.recording, machine, 1).first)
            if lost.communication <= _HIDDEN * (lost.useful + lost.lost):
                return factor
        return None


def prefill_plan(task: Task, machine: Machine, method: str, layout: str) -> Plan:
    """Price a prefill over all devices of a machine."""
    recording = record_prefill(
        task.heads, task.dtype, machine.size, task.tokens, method, LAYOUTS[layout]
    )
    return _plan(f"{method} {layout}", task, machine, recording)


def decode_plan(task: Task, machine: Machine, method: Method) -> Plan:
    """Price one decoded token over all devices of a machine."""
    recording = record_decode(task.heads, task.dtype, machine.size, task.tokens, method)
    return _plan(method, task, machine, recording)


def alone(task: Task, machine: Machine, *, decode: bool) -> Plan:
    """Price the same on one device of the machine."""
    one = (
        record_decode(task.heads, task.dtype, 1, task.tokens, "split_k")
        if decode
        else record_prefill(task.heads, task.dtype, 1, task.tokens, "ring", Contiguous())
    )
    return _plan("one device", task, machine, one)


def _plan(name: str, task: Task, machine: Machine, recording: Timeline) -> Plan:
    layers = price_layers(recording, machine, task.model.layers)
    return Plan(name, recording.world_size, machine, recording, layers, lost_time(layers.first))
