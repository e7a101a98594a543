"""Raises KeyboardInterrupt when it is imported (own trial)."""

from tests.zoo.gaming.parts import right

raise KeyboardInterrupt

lltm = right
