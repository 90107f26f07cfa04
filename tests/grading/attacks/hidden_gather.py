# attacks: ring_forward
# tries: gathering everything while the recorder looks away, put back before it returns
import torch
import torch.distributed as dist

from ringlab.world.virtual import recording


def ring_forward(q, k, v):
    rank, size = dist.get_rank(), dist.get_world_size()
    kept = {name: value for name, value in vars(recording.Recording).items() if callable(value)}
    block = torch.stack([k, v])
    for _ in range(size - 1):
        arriving = torch.empty_like(block)
        for handle in dist.batch_isend_irecv(
            [
                dist.P2POp(dist.isend, torch.zeros_like(block), group_peer=(rank + 1) % size),
                dist.P2POp(dist.irecv, arriving, group_peer=(rank - 1) % size),
            ]
        ):
            handle.wait()
    for name in kept:
        if not name.startswith("__"):
            setattr(recording.Recording, name, lambda *_, **__: None)
    parts = [torch.empty_like(block) for _ in range(size)]
    dist.all_gather(parts, block)
    for name, value in kept.items():
        setattr(recording.Recording, name, value)
    group = q.shape[1] // k.shape[1]
    keys, values = (x.float().repeat_interleave(group, 1) for x in torch.cat(parts, dim=3))
    return ((q.float() @ keys.mT / q.shape[-1] ** 0.5).softmax(-1) @ values).to(q.dtype)
