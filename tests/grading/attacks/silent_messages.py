# attacks: ring_forward
# tries: functions of torch.distributed that send nothing
import torch.distributed as dist


class Done:
    def wait(self):
        return True


dist.batch_isend_irecv = lambda operations: [Done() for _ in operations]
dist.isend = dist.irecv = lambda *_, **__: Done()
dist.get_world_size = lambda *_: 1


def ring_forward(q, k, v):
    group = q.shape[1] // k.shape[1]
    keys, values = (x.repeat_interleave(group, 1) for x in (k, v))
    return (q @ keys.mT / q.shape[-1] ** 0.5).softmax(-1) @ values
