"""The virtual world: ranks that are threads of one process, and take turns."""

from ringlab.world.virtual.fit import misfits
from ringlab.world.virtual.runner import VirtualRunner

__all__ = ["VirtualRunner", "misfits"]
