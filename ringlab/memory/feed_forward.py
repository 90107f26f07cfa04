"""Kinds of feed-forward layer: what a layer holds, and a rank of tensor parallelism of it."""

from __future__ import annotations

from dataclasses import dataclass

from ringlab.memory.dealing import check_divides


@dataclass(frozen=True)
class Dense:
    """A gated feed-forward layer: three matrices of hidden x width.

    Parameters
    ----------
    width : int
    """

    width: int

    def check(self, tp: int) -> None:
        """Refuse tensor parallelism that does not divide the width."""
        check_divides("feed-forward channels", self.width, tp)

    def parameters(self, hidden: int, tp: int = 1) -> int:
        """Count a rank's parameters."""
        return 3 * hidden * self.width // tp

    def multiplied(self, hidden: int) -> int:
        """Count the parameters that a token is multiplied by."""
        return self.parameters(hidden)


@dataclass(frozen=True)
class Experts:
    """A mixture of experts, of which a router picks some for each token.

    Tensor parallelism cuts every expert, as it cuts a dense layer, and leaves the router whole.

    Parameters
    ----------
    count, active : int
        Experts, and those that a token passes.
    width : int
        Of one expert.
    shared : int
        Experts beside these that every token passes.
    router_bias : bool
        Whether the router holds one number more for each expert.
    """

    count: int
    active: int
    width: int
    shared: int = 0
    router_bias: bool = False

    def check(self, tp: int) -> None:
        """Refuse tensor parallelism that does not divide the width of an expert."""
        check_divides("channels of an expert", self.width, tp)

    def parameters(self, hidden: int, tp: int = 1) -> int:
        """Count a rank's parameters, all experts included."""
        router = hidden * self.count + self.count * self.router_bias
        return router + (self.count + self.shared) * Dense(self.width).parameters(hidden, tp)

    def multiplied(self, hidden: int) -> int:
        """Count the parameters that a token is multiplied by: of its experts and the router."""
        passed = self.active + self.shared
        return hidden * self.count + passed * Dense(self.width).parameters(hidden)
