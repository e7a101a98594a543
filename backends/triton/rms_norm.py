"""RMSNorm as Triton kernels, where Triton is installed; see fused/rms_norm.py."""

from importlib.util import find_spec

from backends.base import Implementation, MissingDependency, PythonFunction

IMPLEMENTATION: Implementation
if find_spec("triton") is None:
    IMPLEMENTATION = MissingDependency("triton")
else:
    from backends.triton.fused.rms_norm import rms_norm

    IMPLEMENTATION = PythonFunction(rms_norm)
