"""Faults whose thresholds and coincidences are drawn at random: each is a candidate file as an author would write it.

`draw(seed)` draws them. A fault and its honest twin are one template with the same literals and the same branches; the
twin's branches are right. `python -m tests.zoo.thresholds` says which faults the suite finds.
"""
