"""What each rank hands over at once: its operations, counted, and those of a batch together."""

from __future__ import annotations

from types import FrameType

from ringlab.world.virtual import batches
from ringlab.world.virtual.operations import Group, Launch, Order


class Launches:
    """Numbers the launches of each rank.

    Parameters
    ----------
    size : int
        Number of ranks.
    order : {"stream", "host"}
    """

    def __init__(self, size: int, order: Order) -> None:
        self._whole = order == "stream"
        self._counts = [0] * size
        # the batch a rank is in the middle of; the frame itself, as its number may be used again
        self._batches: dict[int, tuple[FrameType, Launch]] = {}

    def clear(self) -> None:
        """Forget batches that are not complete."""
        self._batches.clear()

    def single(self, group: Group, rank: int) -> Launch:
        """The launch of one operation."""
        return self._launch(group, rank, 1)

    def of_message(self, group: Group, rank: int, batch: FrameType | None) -> Launch:
        """The launch of a message, which may be posted in the batch of some frame."""
        if batch is None:
            return self._launch(group, rank, 1)
        frame, launch = self._batches.get(rank, (None, None))
        if launch is None or frame is not batch:
            launch = self._launch(group, rank, batches.batch_size(batch))
            self._batches[rank] = batch, launch
        if len(launch.operations) + 1 == launch.size:
            del self._batches[rank]
        return launch

    def _launch(self, group: Group, rank: int, size: int) -> Launch:
        launch = Launch(rank, group, self._counts[rank], size, self._whole)
        self._counts[rank] += 1
        return launch
