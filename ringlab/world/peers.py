"""The other end of a message must be a member of the group."""

from __future__ import annotations

from ringlab.world.errors import BadCall


def require_member(kind: str, peer: int, size: int) -> None:
    """Refuse a message whose other end is not there, before anything is sent.

    Parameters
    ----------
    kind : {"send", "recv"}
    peer : int
        Group rank of the other end.
    size : int
        Ranks of the group.

    Raises
    ------
    BadCall
        If the group has no such rank. Gloo crashes the process there, or waits for ever.
    """
    if not 0 <= peer < size:
        way = "to" if kind == "send" else "from"
        raise BadCall(
            f"{kind} {way} rank {peer} of a group that has {size} ranks, 0 to {size - 1}. In a "
            "ring the next rank is (rank + 1) % world_size and the one before (rank - 1) % "
            "world_size."
        )
