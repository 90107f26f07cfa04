"""Which way to run attention wins on a machine, and why the others lose."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ringlab.machine import Machine
from ringlab.simulation.plans import LAYOUTS, Plan, Task, alone, decode_plan, prefill_plan
from ringlab.simulation.programs import DECODE, PREFILL
from ringlab.simulation.words import duration, where_time_goes
from ringlab.timeline import flops

_REASONS = {
    "imbalance": "ranks wait for others that have more to compute",
    "communication": "ranks wait for messages",
    "merge": "partial results are merged in memory",
    "rest": "copies and launches",
}
_CLOSE = 1.02


@dataclass(frozen=True)
class Comparison:
    """The plans for one task, the fastest first.

    Attributes
    ----------
    what : str
        ``"prefill"`` or ``"decode"``.
    plans : tuple of Plan
    """

    what: str
    plans: tuple[Plan, ...]

    @property
    def winner(self) -> Plan:
        """The fastest plan; among those within 2 % of it, one device before many."""
        best = self.plans[0]
        single = [p for p in self.plans if p.ranks == 1 and p.seconds <= _CLOSE * best.seconds]
        return single[0] if single else best

    def lines(self) -> Iterator[str]:
        """The comparison as text: a table, the verdict and its reasons."""
        best = self.winner
        yield f"{self.what:<24} {'attention':>11} {'× best':>7}   where the ranks' time goes"  # noqa: RUF001  a factor
        for plan in self.plans:
            ratio = plan.seconds / best.seconds
            yield f"  {plan.name:<22} {duration(plan.seconds):>11} {ratio:7.2f}   " + (
                where_time_goes(plan.lost)
            )
        yield f"  → {best.name}" + (f" on {best.ranks} devices." if best.ranks > 1 else ".")
        yield from (f"    {reason}" for reason in self.reasons())

    def reasons(self) -> Iterator[str]:
        """Why the others lose; and, if so, that a ring is not what to use here."""
        best = self.winner
        if not best.uses_ring and any(plan.uses_ring for plan in self.plans):
            ring = next(plan for plan in self.plans if plan.uses_ring)
            yield (
                f"Do not use a ring here: {best.name} takes {duration(best.seconds)}, the best "
                f"ring ({ring.name}) {duration(ring.seconds)}, {_why(ring, best)}."
            )
        for plan in self.plans:
            ratio = plan.seconds / best.seconds
            if plan is not best and ratio > _CLOSE and not (plan.uses_ring and not best.uses_ring):
                yield f"{plan.name} takes {ratio:.2f} times as long: {_why(plan, best)}."


def explain(task: Task, machine: Machine) -> tuple[Comparison, Comparison]:
    """Compare every prefill and decode method on a machine.

    Parameters
    ----------
    task : Task
    machine : Machine
        All of its devices are used, one a rank, and one of them alone beside that.

    Returns
    -------
    prefill, decode : Comparison
    """
    prefill = [alone(task, machine, decode=False)]
    decode = [alone(task, machine, decode=True)]
    if machine.size > 1:
        prefill += [
            prefill_plan(task, machine, method, layout) for method in PREFILL for layout in LAYOUTS
        ]
        decode += [decode_plan(task, machine, method) for method in DECODE]
    return _compare("prefill", prefill), _compare("a decoded token", decode)


def _compare(what: str, plans: Sequence[Plan]) -> Comparison:
    return Comparison(what, tuple(sorted(plans, key=lambda plan: plan.seconds)))


def _why(plan: Plan, best: Plan) -> str:
    """The largest part of what a plan spends more than the best one, per rank."""
    if plan.ranks < best.ranks:
        return f"all the work is on {plan.ranks} of {best.ranks} devices"
    more = {
        name: getattr(plan.lost, name) / plan.ranks - getattr(best.lost, name) / best.ranks
        for name in ("useful", *_REASONS)
    }
    name = max(more, key=lambda key: more[key])
    total = (plan.lost.useful + plan.lost.lost) / plan.ranks
    if name == "useful":
        return _more_work(plan, best)
    share = getattr(plan.lost, name) / plan.ranks / total
    return f"{_REASONS[name]} for {share:.0%} of the time"


def _more_work(plan: Plan, best: Plan) -> str:
    """Why the attention itself takes longer: more of it, or tiles that kernels like less."""
    own, other = (
        max(flops(each.recording, rank) for rank in range(each.ranks)) for each in (plan, best)
    )
    if own > _CLOSE * other:
        return f"a rank computes {own / other:.2f} times as much"
    return "its tiles reach a smaller share of the chip's peak"
