"""Pictures of what ranks compute and send each other, each with a description in words."""

from ringlab.draw.bars import draw_measured
from ringlab.draw.deadlock import draw_deadlock
from ringlab.draw.decode import draw_decode
from ringlab.draw.errors import draw_errors
from ringlab.draw.hops import draw_hops
from ringlab.draw.memory import draw_memory
from ringlab.draw.picture import Picture
from ringlab.draw.player import Player, play
from ringlab.draw.ring import draw_ring
from ringlab.draw.ring_strip import draw_ring_strip
from ringlab.draw.timeline import draw_timeline
from ringlab.draw.timelines import draw_timelines
from ringlab.draw.traffic import draw_traffic
from ringlab.draw.units import bytes_text
from ringlab.draw.work_map import draw_work_map
from ringlab.draw.work_maps import draw_work_maps

__all__ = [
    "Picture",
    "Player",
    "bytes_text",
    "draw_deadlock",
    "draw_decode",
    "draw_errors",
    "draw_hops",
    "draw_measured",
    "draw_memory",
    "draw_ring",
    "draw_ring_strip",
    "draw_timeline",
    "draw_timelines",
    "draw_traffic",
    "draw_work_map",
    "draw_work_maps",
    "play",
]
