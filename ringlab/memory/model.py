"""The shape of a decoder, and the parameters that follow from it."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from ringlab.memory.attention import GroupedQuery, Latent
from ringlab.memory.feed_forward import Dense, Experts


@dataclass(frozen=True)
class Model:
    """The shape of a decoder: everything its bytes depend on.

    Parameters
    ----------
    name : str
    hidden, layers, vocabulary : int
        Width of the residual stream, number of layers, rows of the embedding.
    attention : GroupedQuery or Latent
    feed_forward : Dense or Experts
    first_layers : tuple of (Dense or Experts)
        Feed-forward layers that stand first and differ from the others.
    tied : bool
        Whether the output head is the embedding.
    positions : int
        The longest context that the model was made for (`max_position_embeddings`).
    published : int
        Parameters, as the repository of the weights counts them.
    source : str
        Where the figures stand, with the date of their publication.
    """

    name: str
    hidden: int
    layers: int
    vocabulary: int
    attention: GroupedQuery | Latent
    feed_forward: Dense | Experts
    positions: int
    published: int
    source: str
    first_layers: tuple[Dense | Experts, ...] = ()
    tied: bool = False

    def feed_forward_of(self, layer: int) -> Dense | Experts:
        """Give the feed-forward of a layer."""
        first = self.first_layers
        return first[layer] if layer < len(first) else self.feed_forward

    def layer_parameters(self, layer: int, tp: int = 1) -> int:
        """Count what a rank holds of a layer: attention, feed-forward and two RMSNorms."""
        feed_forward = self.feed_forward_of(layer).parameters(self.hidden, tp)
        return self.attention.parameters(self.hidden, tp) + feed_forward + 2 * self.hidden

    def parameters(self) -> int:
        """Count all parameters from the shape."""
        inside = sum(self.layer_parameters(layer) for layer in range(self.layers))
        ends = self.vocabulary * self.hidden * (1 if self.tied else 2)
        return inside + ends + self.hidden

    def multiplied(self) -> int:
        """Count the parameters that a token is multiplied by, the output head included.

        The embedding is looked up, norms and biases are not products, and of the experts only
        those count that a token passes.
        """
        feed_forward = sum(
            self.feed_forward_of(layer).multiplied(self.hidden) for layer in range(self.layers)
        )
        attention = self.layers * self.attention.multiplied(self.hidden)
        return attention + feed_forward + self.vocabulary * self.hidden

    def kv_bytes_per_token(self, dtype: torch.dtype = torch.bfloat16) -> int:
        """Count the bytes that a token takes in the cache of all layers, before any parallelism.

        With grouped queries that is ``2 * layers * Hkv * D * itemsize``.
        """
        return self.layers * self.attention.cached() * dtype.itemsize
