"""The bootstrap of medians, in two stages: launches of a process, then the measurements of each launch."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

#: Launches, each a sequence of measurements.
Launches = Sequence[Sequence[float]]
#: Elements of one block of resamples: about what fits in a cache.
_BLOCK = 2**22


def resampled_medians(launches: Launches, resamples: int, seed: int) -> NDArray[np.float64]:
    """Medians of `resamples` bootstrap samples: launches drawn with replacement, then pairs of each."""
    data = [np.asarray(pairs, dtype=np.float64) for pairs in launches]
    if not data or any(len(pairs) == 0 for pairs in data):
        raise ValueError("launches was empty or held an empty launch, but should have at least one pair in each")
    longest = max(len(pairs) for pairs in data)
    # Launches may differ in length if one was cut short: as many pairs are drawn from a launch as it has.
    padded = np.stack([np.pad(pairs, (0, longest - len(pairs)), constant_values=np.nan) for pairs in data])
    lengths = np.array([len(pairs) for pairs in data])
    generator = np.random.default_rng(seed)
    found = []
    step = max(1, _BLOCK // (len(data) * longest))
    for begin in range(0, resamples, step):
        count = min(step, resamples - begin)
        launch = generator.integers(len(data), size=(count, len(data), 1))
        pair = (generator.random((count, len(data), longest)) * lengths[launch]).astype(np.int64)
        drawn = padded[launch, pair]
        drawn[np.arange(longest) >= lengths[launch]] = np.nan
        flat = drawn.reshape(count, -1)
        found.append(np.nanmedian(flat, axis=1) if np.isnan(flat).any() else np.median(flat, axis=1))
    return np.concatenate(found)
