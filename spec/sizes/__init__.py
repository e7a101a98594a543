"""Sizes by operator, where there are too many to stand beside the formulas in `spec/NAME.py`."""
