"""One of each picture, from numbers made by hand; what all pictures promise is tested on these."""

import torch

from ringlab import draw
from ringlab.layout import Contiguous, Striped, ZigZag
from ringlab.memory import GB, MODELS, Deployment
from ringlab.world.errors import Deadlock, PeerLeft, Wait
from tests.draw.made import ring

CONTEXTS = [2**k for k in range(12, 21)]
SENT = {
    "ring": [512.0 * tokens for tokens in CONTEXTS],
    "all-gather": [600.0 * tokens for tokens in CONTEXTS],
    "split-K": [2.0**22] * len(CONTEXTS),
}
SECONDS = {
    "ring": [6e-5 + 2e-9 * tokens for tokens in CONTEXTS],
    "all-gather": [1e-5 + 3e-9 * tokens for tokens in CONTEXTS],
    "split-K": [4e-5 + 1e-11 * tokens for tokens in CONTEXTS],
}
BATCHES = [1, 2, 4, 8, 16, 32]
BATCH_SENT = {"gathered by all": [2.0**24 * batch for batch in BATCHES],
              "results of all": [2.0**17 * batch for batch in BATCHES]}  # fmt: skip
BATCH_SECONDS = {
    **{name: [sent * 1e-10 + 2e-4 for sent in ys] for name, ys in BATCH_SENT.items()},
    "a long name for one device": [1e-4 * batch for batch in BATCHES],
    "sequences dealt out to all": [1.5e-4 + 4e-6 * batch for batch in BATCHES],
}
ERRORS = {
    "fp32 partials": [(2, 1.0), (4, 1.01), (8, 1.02), (16, 1.02)],
    "bf16 partials": [(2, 1.2), (4, 1.4), (8, 1.6), (16, 1.9)],
}


def deployments():
    some = MODELS["Llama 3.1 70B"]
    return {
        "one card": Deployment(some),
        "TP 4": Deployment(some, tp=4),
        "CP 4": Deployment(some, cp=4),
        "TP 4, fp8": Deployment(some, tp=4, kv_dtype=torch.float8_e4m3fn),
    }


def deadlock(size=4):
    error = Deadlock("ranks wait for one another")
    error.cycle = tuple(range(size))
    error.waits = tuple(
        Wait(rank, (rank + 1) % size, f"send to rank {(rank + 1) % size}", "ring.py:7 in my_ring")
        for rank in range(size)
    )
    return error


def deadlock_with_bystanders():
    error = deadlock(3)
    error.waits += (
        Wait(5, 4, "recv from rank 4", "ring.py:12 in outside"),
        Wait(4, 2, "recv from rank 2", "ring.py:11 in outside"),
        Wait(3, 2, "recv from rank 2", "ring.py:11 in outside"),
    )
    return error


def peer_left():
    error = PeerLeft("rank 2 has returned")
    error.waits = (
        Wait(0, 1, "recv from rank 1", "ring.py:3 in program"),
        Wait(1, 2, "recv from rank 2", "ring.py:3 in program"),
    )
    return error


SPECIMENS = {
    "ring": lambda theme: draw.draw_ring(ring(4), theme=theme),
    "ring_of_8": lambda theme: draw.draw_ring(ring(8), theme=theme),
    "ring_strip": lambda theme: draw.draw_ring_strip(ring(4), theme=theme),
    "ring_strip_of_8": lambda theme: draw.draw_ring_strip(ring(8), theme=theme),
    "timeline": lambda theme: draw.draw_timeline(ring(4, message=2e-4), theme=theme),
    "timeline_of_8": lambda theme: draw.draw_timeline(ring(8, 96, message=2e-4), theme=theme),
    "timeline_by_step": lambda theme: draw.draw_timeline(ring(4, clocked=False), theme=theme),
    "timelines": lambda theme: draw.draw_timelines(
        {"contiguous": ring(4, message=1e-4), "zig-zag": ring(4, layout=ZigZag(), message=1e-4)},
        theme=theme,
    ),
    "work_map_contiguous": lambda theme: draw.draw_work_map(Contiguous(), 4, 64, theme=theme),
    "work_map_zigzag": lambda theme: draw.draw_work_map(ZigZag(), 4, 64, theme=theme),
    "work_map_zigzag_of_8": lambda theme: draw.draw_work_map(ZigZag(), 8, 128, theme=theme),
    "work_map_striped": lambda theme: draw.draw_work_map(Striped(), 4, 32, theme=theme),
    "work_maps": lambda theme: draw.draw_work_maps(
        [Contiguous(), ZigZag(), Striped()], 4, 16, theme=theme
    ),
    "traffic": lambda theme: draw.draw_traffic(ring(4), theme=theme),
    "traffic_of_12": lambda theme: draw.draw_traffic(ring(12), theme=theme),
    "hops": lambda theme: draw.draw_hops(ring(4), [1024] * 3, theme=theme),
    "measured": lambda theme: draw.draw_measured(
        ["W = 2", "W = 4"], {"ring": [1, 3], "all-gather": [1, 3]},
        {"ring": [1, 3], "all-gather": [1, 3]}, unit="sent (KiB)", theme=theme,
    ),
    "memory": lambda theme: draw.draw_memory(deployments(), 80 * GB, 131_072, 2, theme=theme),
    "decode": lambda theme: draw.draw_decode(CONTEXTS, SENT, SECONDS, theme=theme),
    "decode_of_batches": lambda theme: draw.draw_decode(
        BATCHES, BATCH_SENT, BATCH_SECONDS, along="sequences in the batch", theme=theme
    ),
    "deadlock": lambda theme: draw.draw_deadlock(deadlock(), theme=theme),
    "deadlock_of_2": lambda theme: draw.draw_deadlock(deadlock(2), theme=theme),
    "deadlock_of_1": lambda theme: draw.draw_deadlock(deadlock(1), theme=theme),
    "deadlock_of_8": lambda theme: draw.draw_deadlock(deadlock(8), theme=theme),
    "bystanders": lambda theme: draw.draw_deadlock(deadlock_with_bystanders(), theme=theme),
    "peer_left": lambda theme: draw.draw_deadlock(peer_left(), theme=theme),
    "errors": lambda theme: draw.draw_errors(ERRORS, theme=theme),
}  # fmt: skip
