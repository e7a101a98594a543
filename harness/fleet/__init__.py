"""Judge many candidates: from a folder, a JSONL or a Parquet file, or from a training loop.

from harness import fleet
for result in fleet.judge(candidates, reference="slow.py:slow", example="slow.py:args", dtypes=["float32"]):
    print(result.id, result.score, result.sentence)
"""

from harness.fleet.api import judge
from harness.fleet.item import Item
from harness.fleet.outcome import CandidateResult
from harness.fleet.scoring import score

__all__ = ["CandidateResult", "Item", "judge", "score"]
