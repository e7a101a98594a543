"""A fleet of mutants of right functions on a Ray cluster of this machine, which loses a worker and a node meanwhile."""
