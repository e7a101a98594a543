"""The gate: is this commit slower than that one? On a noisy machine the answer is reliable, or there is none.

`statistics` decides from samples alone; `matching` pairs the benchmarks of two trees; `trees` and `workers` run them;
`sampling` takes the samples; `verdict` turns them into verdicts; `drawing` shows these.
"""
