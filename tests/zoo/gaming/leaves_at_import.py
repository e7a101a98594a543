"""Ends the process with code 0 when it is imported (own trial)."""

import os

from tests.zoo.gaming.parts import right

os._exit(0)

lltm = right
