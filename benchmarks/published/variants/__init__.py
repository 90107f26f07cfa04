"""Programs as others published them, a file each."""

from benchmarks.published.variants import (
    burst,
    pith_contiguous,
    pith_zigzag,
    ring_flash_striped,
    ring_flash_zigzag,
)
from benchmarks.published.variants.variant import Variant

VARIANTS: dict[str, Variant] = {
    variant.name: variant
    for variant in (
        ring_flash_zigzag.VARIANT,
        ring_flash_striped.VARIANT,
        burst.VARIANT,
        pith_contiguous.VARIANT,
        pith_zigzag.VARIANT,
    )
}

__all__ = ["VARIANTS", "Variant"]
