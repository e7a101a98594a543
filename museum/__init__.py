"""Releases on PyPI that carry a known defect, and the releases that repaired it, judged by the suite.

`entries` reads what is known, `installing` installs a release in a folder of its own, `judging` judges it through the
command line, `verdicts` compares the report with the entry, and `document` draws docs/museum.md.
"""
