"""The report of a run: cells, schema, shards, merge, difference. Nothing here imports torch."""
