"""A model on ranks: bytes of weights and KV cache on each, and the longest context that fits."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import torch

from ringlab.layout import Contiguous, Layout
from ringlab.memory.dtypes import check_dtype
from ringlab.memory.model import Model


class Place(NamedTuple):
    """Where a rank stands in each kind of parallelism."""

    dp: int
    pp: int
    cp: int
    tp: int


@dataclass(frozen=True)
class Deployment:
    """A model, spread over ``dp * pp * cp * tp`` ranks, which hold its weights and a KV cache.

    Parameters
    ----------
    model : Model
    tp : int
        Tensor parallelism deals out heads and channels. Beyond Hkv ranks it gives a KV head to
        several; a latent vector (MLA) is on every rank.
    cp : int
        Context parallelism deals out the tokens of each sequence; weights are on every rank.
    pp : int
        Pipeline parallelism deals out layers; the first stages have one more where `pp` does
        not divide.
    dp : int
        Data parallelism deals out sequences, whole; weights are on every rank.
    kv_dtype, weight_dtype : torch.dtype
        Of the cache and of the weights, one of ``DTYPES.values()``; bfloat16 by default. Scales
        of quantised formats are not counted.
    layout : Layout
        Which tokens each CP rank caches.

    Raises
    ------
    ValueError
        If such a deployment is impossible: what does not fit, and what would.

    Notes
    -----
    Ranks are numbered with tp fastest, then cp, pp and dp. Rows of the embedding are padded to
    a multiple of `tp`. With one stage a tied output head costs nothing; with more, the last
    stage holds a copy of the embedding. Activations, workspaces and what the driver takes are
    not counted; keep room for them with `reserve`.

    Examples
    --------
    >>> from ringlab.memory import GB, MODELS, Deployment, both
    >>> node = Deployment(MODELS["Llama 3.1 70B"], tp=8)
    >>> both(node.kv_bytes_per_token(rank=0))
    '40 KiB (40.96 kB)'
    >>> node.longest_context(80 * GB)
    1522443
    """

    model: Model
    tp: int = 1
    cp: int = 1
    pp: int = 1
    dp: int = 1
    kv_dtype: torch.dtype = torch.bfloat16
    weight_dtype: torch.dtype = torch.bfloat16
    layout: Layout = Contiguous()  # noqa: RUF009  frozen, no state

    def __post_init__(self) -> None:
        for name in ("tp", "cp", "pp", "dp"):
            size = getattr(self, name)
            if isinstance(size, bool) or not isinstance(size, int) or size < 1:
                raise ValueError(f"{name} is a number of ranks, 1 or more; got {size!r}.")
        for name in ("kv_dtype", "weight_dtype"):
            check_dtype(name, getattr(self, name))
        if self.pp > self.model.layers:
            raise ValueError(
                f"{self.model.layers} layers of {self.model.name} cannot fill pp={self.pp} stages; "
                f"pp can be 1 to {self.model.layers}."
            )
        self.model.attention.check(self.tp)
        for feed_forward in {*self.model.first_layers, self.model.feed_forward}:
            feed_forward.check(self.tp)

    @property
    def world_size(self) -> int:
        """Ranks in all."""
        return self.dp * self.pp * self.cp * self.tp

    def place(self, rank: int) -> Place:
        """Find where a rank stands.

        Raises
        ------
        ValueError
            If there is no such rank.
        """
        if not 0 <= rank < self.world_size:
            raise ValueError(f"rank {rank} is not among the {self.world_size} of this deployment.")
        rest, tp = divmod(rank, self.tp)
        rest, cp = divmod(rest, self.cp)
        dp, pp = divmod(rest, self.pp)
        return Place(dp, pp, cp, tp)

    def layers(self, rank: int) -> range:
        """Give the layers of a rank's pipeline stage."""
        stage = self.place(rank).pp
        count, longer = divmod(self.model.layers, self.pp)
        start = stage * count + min(stage, longer)
        return range(start, start + count + (stage < longer))

    def tokens(self, rank: int, length: int) -> int:
        """Count the tokens of a sequence that a rank caches."""
        return self.layout.local_length(self.place(rank).cp, self.cp, length)

    def longest_shard(self, length: int) -> int:
        """Count the tokens of a sequence on the CP rank that caches most of them."""
        return max(self.tokens(rank, length) for rank in range(0, self.cp * self.tp, self.tp))

    def sequences(self, rank: int, total: int) -> int:
        """Count the sequences that a rank serves; the first replicas have one more."""
        if total < 0:
            raise ValueError(f"sequences is 0 or more; got {total}.")
        count, longer = divmod(total, self.dp)
        return count + (self.place(rank).dp < longer)

    def kv_bytes_per_token(self, rank: int) -> int:
        """Bytes of one cached token on a rank: its layers, its KV heads."""
        cached = self.model.attention.cached(self.tp)
        return len(self.layers(rank)) * cached * self.kv_dtype.itemsize

    def kv_bytes(self, rank: int, length: int, sequences: int = 1) -> int:
        """Bytes of the KV cache on a rank.

        Parameters
        ----------
        rank : int
        length : int
            Tokens of each sequence.
        sequences : int
            Sequences in all replicas together.
        """
        held = self.sequences(rank, sequences) * self.tokens(rank, length)
        return held * self.kv_bytes_per_token(rank)

    def weight_bytes(self, rank: int) -> int:
        """Bytes of the weights on a rank."""
        model, layers = self.model, self.layers(rank)
        stage = self.place(rank).pp
        inside = sum(model.layer_parameters(layer, self.tp) for layer in layers)
        rows = -(-model.vocabulary // self.tp) * model.hidden
        first, last = stage == 0, stage == self.pp - 1
        copies = 1 if model.tied and first and last else first + last
        return (inside + rows * copies + model.hidden * last) * self.weight_dtype.itemsize

    def total_bytes(self, rank: int, length: int, sequences: int = 1) -> int:
        """Bytes of weights and KV cache on a rank."""
        return self.weight_bytes(rank) + self.kv_bytes(rank, length, sequences)

    def peak_bytes(self, length: int, sequences: int = 1) -> int:
        """Bytes of weights and KV cache on the rank that holds most."""
        tokens = self.sequences(0, sequences) * self.longest_shard(length)
        return max(weights + tokens * token for weights, token in self._stages())

    def fits(self, card: int, length: int, sequences: int = 1, *, reserve: int = 0) -> bool:
        """Tell whether every rank's weights and cache fit on a card.

        Parameters
        ----------
        card : int
            Bytes of a card: ``80 * GB``.
        length : int
            Tokens of each sequence.
        sequences : int
            Sequences in all replicas together.
        reserve : int
            Bytes of the card to keep free.
        """
        return self.peak_bytes(length, sequences) + reserve <= card

    def longest_context(self, card: int, sequences: int = 1, *, reserve: int = 0) -> int | None:
        """Find the most tokens n that fit: exactly, ``fits(n)`` and not ``fits(n + 1)``.

        It says what fits in memory, not what the model was trained for (`Model.positions`).

        Parameters
        ----------
        card, reserve : int
            Bytes, as in `fits`.
        sequences : int
            1 or more.

        Returns
        -------
        int or None
            None if not even the weights fit.

        Raises
        ------
        ValueError
            Without a sequence any length fits.
        """
        if sequences < 1:
            raise ValueError(f"sequences is 1 or more; got {sequences}, for which any length fits.")
        served = self.sequences(0, sequences)
        room = min(
            (card - reserve - weights) // (served * token) for weights, token in self._stages()
        )
        if room < 0:
            return None
        fitting, beyond = 0, 1
        while self.longest_shard(beyond) <= room:
            fitting, beyond = beyond, 2 * beyond
        while beyond - fitting > 1:
            middle = (fitting + beyond) // 2
            if self.longest_shard(middle) <= room:
                fitting = middle
            else:
                beyond = middle
        return fitting

    def _stages(self) -> list[tuple[int, int]]:
        """Bytes of the weights and of a cached token on the ranks of each pipeline stage."""
        first = range(0, self.pp * self.cp * self.tp, self.cp * self.tp)
        return [(self.weight_bytes(rank), self.kv_bytes_per_token(rank)) for rank in first]
