"""Never returns from its import (own trial)."""

import time

from tests.zoo.gaming.parts import right

time.sleep(10**6)

lltm = right
