# attacks: ring_forward
# tries: finding the shards of all ranks in memory, and sending empty blocks around
import gc

import torch
import torch.distributed as dist


def ring_forward(q, k, v):
    rank, size = dist.get_rank(), dist.get_world_size()
    shards = [
        found
        for found in gc.get_objects()
        if type(found) is list and len(found) == size and all(type(x) is tuple for x in found)
    ]
    whole_k = torch.cat([shard[1] for shard in shards[0]], dim=2)
    whole_v = torch.cat([shard[2] for shard in shards[0]], dim=2)
    block = torch.zeros_like(torch.stack([k, v]))
    for _ in range(size - 1):
        for handle in dist.batch_isend_irecv(
            [
                dist.P2POp(dist.isend, block, group_peer=(rank + 1) % size),
                dist.P2POp(dist.irecv, torch.empty_like(block), group_peer=(rank - 1) % size),
            ]
        ):
            handle.wait()
    group = q.shape[1] // k.shape[1]
    keys, values = (x.float().repeat_interleave(group, 1) for x in (whole_k, whole_v))
    return ((q.float() @ keys.mT / q.shape[-1] ** 0.5).softmax(-1) @ values).to(q.dtype)
