"""The contracts: what each operator computes, its gradient, and how much error is allowed.

Each operator has one module (`spec.lltm`) with a module-level `OPERATOR`. Nothing here imports `backends` or `harness`,
so a contract cannot depend on an implementation that it is used to judge.
"""
