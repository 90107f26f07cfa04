# attacks: ring_forward
# tries: handing blocks on through a global, with empty messages of the right sizes beside it
import torch
import torch.distributed as dist

BLOCKS = {}


def ring_forward(q, k, v):
    rank, size = dist.get_rank(), dist.get_world_size()
    BLOCKS[rank] = (k, v)
    block = torch.zeros_like(torch.stack([k, v]))
    for _ in range(size - 1):
        arriving = torch.empty_like(block)
        for handle in dist.batch_isend_irecv(
            [
                dist.P2POp(dist.isend, block, group_peer=(rank + 1) % size),
                dist.P2POp(dist.irecv, arriving, group_peer=(rank - 1) % size),
            ]
        ):
            handle.wait()
    group = q.shape[1] // k.shape[1]
    out, lse = torch.zeros(q.shape), torch.full(q.shape[:-1], -torch.inf)
    for step in range(size):
        keys, values = (x.float().repeat_interleave(group, 1) for x in BLOCKS[(rank - step) % size])
        scores = q.float() @ keys.mT / q.shape[-1] ** 0.5
        both = torch.logaddexp(lse, scores.logsumexp(-1))
        part = scores.softmax(-1) @ values
        new = (scores.logsumexp(-1) - both).exp()[..., None] * part
        out, lse = (lse - both).exp()[..., None] * out + new, both
    return out.to(q.dtype)
