"""A recording and a machine give a timeline."""

from ringlab.price.pricing import Layers, price, price_layers

__all__ = ["Layers", "price", "price_layers"]
