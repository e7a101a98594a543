"""Call right implementations on drawn scenarios for hours, and look for calls that the suite would fail.

`python -m tools.soak --help` lists the options; docs/method.md has the results.
"""
