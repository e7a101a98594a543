"""Taking a measurement: what is called, by which clock, how much memory, how many instructions.

This package imports torch and nothing of this project, by relative imports alone: the gate loads it from one tree to
measure two, so that both are measured alike.
"""
