"""A model's attention on a machine that is not here: how long, where the time goes, and why."""

from ringlab.simulation.explain import Comparison, explain
from ringlab.simulation.plans import LAYOUTS, Plan, Task, alone, decode_plan, prefill_plan
from ringlab.simulation.programs import DECODE, PREFILL

__all__ = [
    "DECODE",
    "LAYOUTS",
    "PREFILL",
    "Comparison",
    "Plan",
    "Task",
    "alone",
    "decode_plan",
    "explain",
    "prefill_plan",
]
