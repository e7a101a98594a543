"""Measure how often the harness is wrong: false alarms over right implementations, detections over planted faults.

`method` runs the study of the method: `candidates` are what it calls, `judges` the rules to compare, `products` what
one of them needs, `running` calls and counts, `tables` and `plot` draw. `gate` and `timing` study the measurement of
time. `options` is what their commands have in common.
"""
