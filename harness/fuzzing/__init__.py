"""Calls with wrong arguments: each must end in a clean exception or in a right answer, never in a crash.

`spoiling` changes an argument, `calls` draws calls, `outcome` judges the result of one, and `session` runs until its
time is used, each function in a process of its own: `python -m harness fuzz`.
"""
