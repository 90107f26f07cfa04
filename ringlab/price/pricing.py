"""A recording and a machine give a timeline."""

from __future__ import annotations

from dataclasses import dataclass, replace

from ringlab.machine.machine import Machine
from ringlab.price.clock import PER_SECOND, seconds
from ringlab.price.costs import durations
from ringlab.price.engine import Simulation, Times
from ringlab.price.program import take_apart
from ringlab.timeline import Timeline, log


def price(recording: Timeline, machine: Machine | str) -> Timeline:
    """Say when everything in a recording would have happened on a machine.

    Parameters
    ----------
    recording : Timeline
        What a run left behind, usually of the virtual world; times it may have are not used.
    machine : Machine or str
        A name such as ``"4x8 h100-ib"`` is looked up with `Machine.named`. Rank r of the
        recording is device r of the machine.

    Returns
    -------
    Timeline
        The same events with `start` and `end` in seconds. A message starts when its own rank
        has issued it and the operations before it in its group are over, and ends when it has
        arrived. A wait ends with what it waits for.

    Raises
    ------
    ValueError
        If the machine is unknown or has fewer devices than the recording has ranks, or a
        message of the recording has only one end.
    UnpricedOperator
        If an operator has no formula; the message says how to give it one.

    Notes
    -----
    A rank computes one operator after the other, each for the time that the roofline gives.
    Operations of one group on a rank follow one another, each after the compute issued before
    it. A message takes the latency of its protocol and its bytes at the rate of the slowest
    link, which it shares with the other messages of its round (`ringlab.price.traffic`). A
    collective starts when all members have started it and takes the time of the fastest of the
    documented algorithms (`ringlab.price.collectives`). On a GPU transfers run beside the
    kernels at no cost to them. These are NCCL's rules, also for a recording made under
    gloo's, and groups of the same ranks count as one. The host is taken to run ahead. There is
    no chance in it: the same recording and machine give the same timeline, to the last bit.

    Examples
    --------
    >>> import torch
    >>> from ringlab import World, ring_attention
    >>> from ringlab.price import price
    >>> def attend():
    ...     q, k, v = (torch.empty(1, 8, 1024, 128, dtype=torch.bfloat16, device="meta")
    ...                for _ in range(3))
    ...     ring_attention(q, k, v, length=8192)
    >>> with World(8) as world:
    ...     _ = world.run(attend)
    ...     priced = price(world.timeline, "8x h100-nvlink")
    >>> priced.events[0].start
    0.0
    """
    if isinstance(machine, str):
        machine = Machine.named(machine)
    check_size(recording, machine)
    simulation = Simulation(take_apart(recording))
    times = simulation.run(durations(simulation, machine), simulation.at_zero())
    return timed(recording, times)


def timed(recording: Timeline, times: Times) -> Timeline:
    """The recording with times."""
    clock = log.Times(times.begin / PER_SECOND, times.end / PER_SECOND)
    return replace(recording, events=log.EventLog.of(recording.events).timed(clock), began=None)


@dataclass(frozen=True)
class Layers:
    """The price of one recording run several times in a row.

    Attributes
    ----------
    seconds : float
        Of all repetitions.
    count : int
        How many.
    simulated : int
        How many were simulated. From then on every repetition shifted all ranks and groups by
        the same time, so the rest follows exactly.
    period : float
        Seconds that each further repetition takes.
    first : Timeline
        The first repetition.
    """

    seconds: float
    count: int
    simulated: int
    period: float
    first: Timeline


def price_layers(recording: Timeline, machine: Machine | str, count: int) -> Layers:
    """Price a recording that is run `count` times in a row, as by the layers of a model.

    Parameters
    ----------
    recording : Timeline
        Of one layer.
    machine : Machine or str
    count : int
        At least 1.

    Raises
    ------
    ValueError, UnpricedOperator
        As `price`; and if `count` is below 1.

    Notes
    -----
    Ranks do not wait for one another between layers: a rank that is done starts the next one.
    """
    if count < 1:
        raise ValueError(f"a recording is run at least once; count is {count!r}.")
    if isinstance(machine, str):
        machine = Machine.named(machine)
    check_size(recording, machine)
    simulation = Simulation(take_apart(recording))
    costs = durations(simulation, machine)
    state = simulation.at_zero()
    first: Timeline | None = None
    for done in range(1, count + 1):
        times = simulation.run(costs, state)
        first = timed(recording, times) if first is None else first
        shift = times.state.ahead_of(state)
        latest, state = int(state.clock.max()), times.state
        if shift is not None or done == count:
            rest = (count - done) * (shift or 0)
            total = int(state.clock.max()) + rest
            last = shift if shift is not None else int(state.clock.max()) - latest
            return Layers(seconds(total), count, done, seconds(last), first)
    raise AssertionError


def check_size(recording: Timeline, machine: Machine) -> None:
    """Refuse a recording of more ranks than the machine has devices."""
    if recording.world_size > machine.size:
        raise ValueError(
            f"the recording has {recording.world_size} ranks and {machine.name} {machine.size} "
            f"devices: name a machine with at least {recording.world_size}."
        )
