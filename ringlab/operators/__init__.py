"""What an operator computes and touches: formulas from a call to its `Work`."""

from ringlab.operators.registry import UnpricedOperator, register, work

__all__ = ["UnpricedOperator", "register", "work"]
