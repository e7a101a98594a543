"""The suite for packages outside this repository: `python -m harness judge` runs it."""
