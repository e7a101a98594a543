"""Cross-entropy as Triton kernels, where Triton is installed; see fused/cross_entropy.py."""

from importlib.util import find_spec

from backends.base import Implementation, MissingDependency, PythonFunction

IMPLEMENTATION: Implementation
if find_spec("triton") is None:
    IMPLEMENTATION = MissingDependency("triton")
else:
    from backends.triton.fused.cross_entropy import cross_entropy

    IMPLEMENTATION = PythonFunction(cross_entropy)
