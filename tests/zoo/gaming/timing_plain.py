"""No attack: the function that `patches_events`, `other_stream` and `overlaps_streams` call, timed beside them."""

from tests.zoo.gaming.parts import right as plain

__all__ = ["plain"]
