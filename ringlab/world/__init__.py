"""Where ranks run: threads that take turns, CPU processes, or GPUs."""

from ringlab.world.api import World
from ringlab.world.errors import (
    BadCall,
    Deadlock,
    HungRank,
    MessageMismatch,
    PeerLeft,
    RankFailed,
    UnmatchedOperation,
    UnwaitedHandle,
    WorldError,
)

__all__ = [
    "BadCall",
    "Deadlock",
    "HungRank",
    "MessageMismatch",
    "PeerLeft",
    "RankFailed",
    "UnmatchedOperation",
    "UnwaitedHandle",
    "World",
    "WorldError",
]
