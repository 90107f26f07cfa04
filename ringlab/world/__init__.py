"""Where ranks run: threads that take turns, CPU processes, or GPUs."""

from ringlab.world.api import World
from ringlab.world.choice import RealRanks, real_ranks
from ringlab.world.errors import (
    BadCall,
    BufferHazard,
    Deadlock,
    HungRank,
    MessageMismatch,
    PeerLeft,
    RankFailed,
    UnmatchedOperation,
    UnwaitedHandle,
    Wait,
    WorldError,
)

__all__ = [
    "BadCall",
    "BufferHazard",
    "Deadlock",
    "HungRank",
    "MessageMismatch",
    "PeerLeft",
    "RankFailed",
    "RealRanks",
    "UnmatchedOperation",
    "UnwaitedHandle",
    "Wait",
    "World",
    "WorldError",
    "real_ranks",
]
