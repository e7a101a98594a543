"""Measure: the calls, the clocks, memory, and what the machine can do.

This package imports torch and, by relative imports, itself; nothing else of this project. The gate loads it from one
tree and measures two trees with it.
"""
