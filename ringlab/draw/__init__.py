"""Pictures of what ranks send each other, each with a description in words."""

from ringlab.draw.bars import draw_measured
from ringlab.draw.picture import Picture, bytes_text
from ringlab.draw.ring import draw_ring

__all__ = ["Picture", "bytes_text", "draw_measured", "draw_ring"]
