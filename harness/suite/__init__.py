"""The suite for packages outside this repository: `python -m harness judge` and `python -m harness bench` run it."""
