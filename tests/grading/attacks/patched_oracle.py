# attacks: ring_forward
# tries: an oracle that says that zeros are right
import torch

import ringlab.grade.oracle as oracle

oracle.exact_attention = lambda q, k, v, **_: oracle.Exact(*[torch.zeros_like(q)] * 5)


def ring_forward(q, k, v):
    return torch.zeros_like(q)
