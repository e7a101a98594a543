"""Calls with arguments that nobody should pass: each ends in a clean exception or in a right answer, never in a crash.

`spoiling` is what is done to an argument, `calls` draws calls, `outcome` judges what became of one, and `session` runs
until its time is used, each function in a process of its own: `python -m harness fuzz`.
"""
