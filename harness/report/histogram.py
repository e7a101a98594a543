"""The bins in which elements are counted by their error in units in the last place (ULP)."""

from __future__ import annotations

#: Bin 0 is for at most EDGES[0] ULP, bin k for more than EDGES[k - 1] and at most EDGES[k], the last for all beyond.
EDGES = tuple(2.0**power for power in range(-1, 11))
BINS = len(EDGES) + 1
