"""The cost of each backend: a record of times, ratios and rooflines of one run, and the tables drawn from it."""
