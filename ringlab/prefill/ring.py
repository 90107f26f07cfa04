"""Ring attention: K and V go round, queries stay."""

from __future__ import annotations

import torch.distributed as dist
from torch import Tensor

from ringlab.calls.entry import entry
from ringlab.calls.exchange import Message, exchange
from ringlab.layout import Contiguous, Layout
from ringlab.numerics import AttentionState
from ringlab.prefill import ring_backward
from ringlab.prefill.blocks import Own, Views, attend_block, finished
from ringlab.prefill.buffers import BlockBuffer, pack
from ringlab.prefill.method import Gradients, attention
from ringlab.prefill.plan import Plan
from ringlab.prefill.support import PREFILL


@entry(PREFILL)
def ring_attention(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    *,
    layout: Layout = Contiguous(),  # noqa: B008  frozen, no state
    causal: bool = False,
    scale: float | None = None,
    length: int | None = None,
    group: dist.ProcessGroup | None = None,
    kernel: str | None = None,
) -> Tensor:
    """Attention over a sequence that is sharded over the ranks of a group.

    Every rank calls it with its shard; K and V travel from rank to rank while each rank
    computes on the block it holds, and partial results are merged by their LSE (log-sum-exp).

    Parameters
    ----------
    q : Tensor
        [B, Hq, L_rank, D]: the queries of this rank's tokens; float32, float64, bfloat16 or
        float16, any strides. With rotary embeddings, rotate q and k by global positions
        first (``ringlab.rope``).
    k, v : Tensor
        [B, Hkv, L_rank, D] with Hq a multiple of Hkv: keys and values of the same tokens.
    layout : Layout
        Which tokens each rank holds: ``layout.positions(rank, world_size, length)``.
    causal : bool
        Whether a token attends only to tokens up to its own global position.
    scale : float, optional
        Positive factor on the scores; 1 / sqrt(D) by default.
    length : int, optional
        Tokens of the whole sequence. Without it the ranks compare notes first, in one small
        all-gather (64 bytes to each other rank) that also finds ranks that do not agree.
        With it there is no such message, and on GPUs no host synchronisation: then all
        ranks must make the same call.
    group : ProcessGroup, optional
        The ranks that share the sequence; the default group if None. On NCCL make its
        communicator beforehand (``init_process_group(device_id=...)`` does): where some ranks
        hold no token, the first hop would otherwise not involve every rank.
    kernel : str, optional
        What computes a block, one of ``ringlab.numerics.available_kernels()``; by default the
        fastest that fits. ``"reference"`` keeps partial results of 16-bit inputs in float32.

    Returns
    -------
    Tensor
        [B, Hq, L_rank, D], in the dtype of q.

    Raises
    ------
    ValueError, TypeError, RuntimeError, NotImplementedError
        If the inputs do not fit or something is asked for that is not supported; raised
        before any message of attention is sent.

    Notes
    -----
    With X the bytes of the K and V of one rank, X = 2·B·Hkv·(L/W)·D·itemsize, a rank sends
    (W-1)·X forward, in W-1 hops of one message each, posted before the compute that hides
    them. Backward it sends (W-1)·X of K and V and (W-1)·Y of dK and dV, which travel in the
    accumulation dtype: Y = 2·X for 16-bit inputs, Y = X otherwise. A hop that nobody
    further on needs is not made: with ``Contiguous`` and `causal` the block of rank s makes
    W-1-s hops, which halves the total, though not what the busiest rank receives.

    A rank holds two blocks of K and V beside its own, whatever the number of ranks. Nothing
    foreign is saved for the backward, which starts again from the rank's own K and V; it needs
    the saved tensors only, so it works under activation checkpointing. The backward
    communicates as well: it must run on every rank, also on one whose output does not count
    (add ``0 * out.sum()`` to its loss).

    References
    ----------
    Liu, Zaharia and Abbeel, Ring Attention with Blockwise Transformers, arXiv:2310.01889;
    Brandon et al., Striped Attention, arXiv:2311.09431 (balance);
    the zig-zag layout as in github.com/zhuzilin/ring-flash-attention.

    Examples
    --------
    >>> import torch
    >>> from ringlab import World, ZigZag, ring_attention
    >>> def attend(q, k, v):
    ...     rank = torch.distributed.get_rank()
    ...     q, k, v = (ZigZag().shard(x, rank, 4) for x in (q, k, v))
    ...     return ring_attention(q, k, v, layout=ZigZag(), causal=True)
    >>> q, k, v = torch.randn(3, 1, 8, 64, 16).unbind()
    >>> with World(4) as world:
    ...     out = ZigZag().unshard(world.run(attend, q, k, v))
    >>> out.shape
    torch.Size([1, 8, 64, 16])
    """
    return attention(Ring, q, k, v, layout=layout, causal=causal, scale=scale, length=length,
                     group=group, kernel=kernel)  # fmt: skip


class Ring:
    """The ring as a prefill method."""

    name = "ring_attention"

    @staticmethod
    def forward(q: Tensor, k: Tensor, v: Tensor, plan: Plan) -> tuple[Tensor, Tensor]:
        """W steps and W-1 hops; what is computed on is sent, what is received comes beside it."""
        state: AttentionState | None = None
        views = Views()
        held, spare = BlockBuffer(k, plan.lengths), BlockBuffer(k, plan.lengths)
        if plan.moves(plan.rank, 0):
            pack(held.block(plan.rank), k, v)
        for step in range(plan.world_size):
            handles = exchange(*_hop(step, held, spare, plan), plan.group)
            source = plan.source(step)
            tiles = plan.tiles(source)
            if tiles:
                block = (k, v) if step == 0 else held.block(source)
                state = attend_block(state, q, block, source, tiles, plan, views)
            for handle in handles:
                handle.wait()
            held, spare = spare, held
        return finished(state, q)

    @staticmethod
    def backward(own: Own, plan: Plan) -> Gradients:
        """See `ringlab.prefill.ring_backward`."""
        return ring_backward.gradients(own, plan)


def _hop(
    step: int, held: BlockBuffer, spare: BlockBuffer, plan: Plan
) -> tuple[list[Message], list[Message]]:
    """The block at hand goes on, and the next one comes, as far as somebody needs them."""
    sends, receives = [], []
    source, following = plan.source(step), plan.source(step + 1)
    if plan.moves(source, step):
        sends.append((held.block(source), plan.neighbour(1)))
    if plan.moves(following, step):
        receives.append((spare.block(following), plan.neighbour(-1)))
    return sends, receives
