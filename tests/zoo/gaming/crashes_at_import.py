"""Reads address 0 when it is imported (own trial)."""

import ctypes

from tests.zoo.gaming.parts import right

ctypes.string_at(0)

lltm = right
