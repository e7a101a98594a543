"""What each backend costs: a record of times, ratios and rooflines of one run, and the tables drawn from it."""
