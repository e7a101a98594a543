"""Mechanical mutation of the shipped backends: does the suite notice one wrong token in a right source?

    operators.py      the mutation operators, from source text to a list of mutants; they run nothing
    sources.py        the mutated files, what must be rebuilt for each, and the number of mutants to draw
    builder.py        compiles on request, in a separate process
    judging.py        judges one mutant in a forked child of a warm parent
    runner.py         the run: build, judge, judge survivors under sanitizers
    account.py        scores, the ledger, tables and JSON
    document.py       the tables of docs/mutation.md, from the JSON
    zoo_score.py      the hand-written faults and controls, judged in the same way
    equivalents.toml  the ledger: mutants that no test can notice, or none without a GPU, each with its reason

`python -m tools.mutation --help`.
"""
