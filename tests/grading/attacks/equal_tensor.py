# attacks: ring_forward
# tries: a tensor whose comparisons and differences come out as the cheat likes
import torch


class Equal(torch.Tensor):
    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        if func.__name__ in ("eq", "allclose", "equal", "isclose", "__eq__"):
            return torch.tensor(True)
        if func.__name__ in ("sub", "__sub__", "rsub", "__rsub__"):
            return torch.zeros(1)
        return super().__torch_function__(func, types, args, kwargs or {})


def ring_forward(q, k, v):
    return torch.zeros_like(q).as_subclass(Equal)
