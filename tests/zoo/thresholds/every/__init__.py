"""Faults of every operator: drawn from what its contract says of its arguments, in the baseline's own source.

A fault is a condition, which is what an author writes before a path of its own, and an effect, which is what the path
does wrong. `form.py` knows the arguments of an operator, `conditions.py` draws conditions, `classes.py` joins both.
"""
