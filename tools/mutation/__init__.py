"""Mechanical mutation of the shipped backends: does the suite notice when one token of a right source is wrong?

    operators.py      the mutation operators, from source text to a list of mutants; they run nothing
    sources.py        which files are mutated, what has to be rebuilt for each, and how many mutants are drawn
    builder.py        compiles on request, a process of its own
    court.py          judges one mutant in a forked child of a warm parent
    runner.py         the run: build, judge, ask again
    account.py        scores, the ledger, tables and JSON
    document.py       the tables of docs/mutation.md, from the JSON
    zoo_score.py      the hand-written faults and controls, by the same court
    equivalents.toml  the ledger: what nothing can notice, or nothing without a GPU, each with its reason

`python -m tools.mutation --help`.
"""
