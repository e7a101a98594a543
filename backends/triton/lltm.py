"""LLTM as Triton kernels, where Triton is installed; see fused/lltm.py."""

from importlib.util import find_spec

from backends.base import Implementation, MissingDependency, PythonFunction

IMPLEMENTATION: Implementation
if find_spec("triton") is None:
    IMPLEMENTATION = MissingDependency("triton")
else:
    from backends.triton.fused.lltm import lltm

    IMPLEMENTATION = PythonFunction(lltm)
