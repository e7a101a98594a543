"""Closes every descriptor of its process when it is imported (own trial)."""

import os

from tests.zoo.gaming.parts import right

os.closerange(3, 1024)

lltm = right
