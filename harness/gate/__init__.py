"""The gate: is this commit slower than that one? An answer that holds on a noisy machine, or none.

`statistics` decides from samples and knows no clock; `matching` holds the benchmarks of two trees side by side; `trees`
and `workers` run them; `sampling` takes the samples; `verdict` says what they mean; `drawing` shows it.
"""
