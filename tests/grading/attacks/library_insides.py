# attacks: ring_forward
# tries: the parts inside the library's ring that do the work
import inspect

import torch.distributed as dist

import ringlab.prefill.ring as ring
from ringlab.layout import Contiguous


def ring_forward(q, k, v):
    for name, value in vars(ring).items():
        if (
            inspect.isfunction(value)
            and name != "ring_attention"
            and "layout" in str(inspect.signature(value))
        ):
            return value(q, k, v, layout=Contiguous(), causal=False, scale=None, group=None)
    return ring.ring_attention.__wrapped__(q, k, v, group=dist.group.WORLD)
