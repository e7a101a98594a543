"""The judge: scenarios, the oracle, the comparison, and how one property of one implementation becomes a cell."""
