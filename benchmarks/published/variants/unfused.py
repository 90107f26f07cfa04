"""The merge of ring-flash-attention: an operator, and a pass over memory, for each sign of it."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

State = tuple[Tensor, Tensor]
"""Output [B, H, L, D] and LSE [B, H, L, 1], both in float32."""


def first(out: Tensor, lse: Tensor) -> State:
    """The state after one block."""
    return out.to(torch.float32), lse.unsqueeze(-1)


def merged(state: State, out: Tensor, lse: Tensor) -> State:
    """The state with one more block."""
    total, total_lse = state
    out, lse = out.to(torch.float32), lse.unsqueeze(-1)
    total = total - torch.sigmoid(lse - total_lse) * (total - out)
    return total, total_lse - F.logsigmoid(total_lse - lse)


def merge_rows(state: State, start: int, out: Tensor, lse: Tensor) -> None:
    """Merge a block of the queries from `start` on into the state."""
    rows = [x[:, :, start:] for x in state]
    new = merged((rows[0], rows[1]), out, lse)
    for row, value in zip(rows, new, strict=True):
        row.copy_(value)


def final(state: State, dtype: torch.dtype) -> tuple[Tensor, Tensor]:
    """Output in the dtype of the inputs, and LSE [B, H, L]."""
    return state[0].to(dtype), state[1].squeeze(-1)
