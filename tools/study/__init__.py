"""Measure how often the harness is wrong: false alarms over the controls of tests/zoo, detections over its faults.

`method` runs the study and draws its tables, `judges` defines the rules to compare, `plot` draws the figures.
"""
