"""Calls exit(0) when it is imported (own trial)."""

import sys

from tests.zoo.gaming.parts import right

sys.exit(0)

lltm = right
