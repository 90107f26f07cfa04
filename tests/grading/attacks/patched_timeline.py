# attacks: ring_forward
# tries: a timeline that says what the exercise wants to hear
import torch.distributed as dist

import ringlab.timeline

Timeline = ringlab.timeline.Timeline
Timeline.hops = lambda *_: ()
Timeline.edges = lambda *_: []


def ring_forward(q, k, v):
    parts = [[q.new_empty(k.shape) for _ in range(dist.get_world_size())] for _ in "kv"]
    dist.all_gather(parts[0], k)
    dist.all_gather(parts[1], v)
    return q
