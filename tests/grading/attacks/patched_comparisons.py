# attacks: ring_forward
# tries: comparing functions of torch that always agree
import torch

torch.equal = torch.allclose = torch.isclose = lambda *_, **__: True
torch.testing.assert_close = lambda *_, **__: None


def ring_forward(q, k, v):
    return torch.zeros_like(q)
