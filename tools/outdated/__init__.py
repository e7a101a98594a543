"""Which answers of a GPU are of older code than the tree's: `python -m tools.outdated`.

code.py      what an implementation is made of, in the tree and at a commit
answers.py   what the records of a GPU say of it
__main__.py  the list in docs/results.md
same.toml    the ledger: changes of a file that change no result, each with its reason
"""
