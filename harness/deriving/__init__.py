"""Contracts from reference functions: shapes, sizes, values and a gradient are found by reading and calling them."""
