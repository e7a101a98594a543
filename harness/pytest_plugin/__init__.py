"""The pytest plugin: options, one test a cell, workers, progress and the report."""
