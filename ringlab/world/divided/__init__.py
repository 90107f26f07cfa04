"""The virtual world with its ranks spread over processes, for recordings of very many ranks."""

from ringlab.world.divided.runner import DividedRunner

__all__ = ["DividedRunner"]
