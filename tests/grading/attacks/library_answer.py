# attacks: ring_forward
# tries: the library's own ring instead of writing it
from ringlab import ring_attention


def ring_forward(q, k, v):
    return ring_attention(q, k, v)
