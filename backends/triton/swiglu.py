"""SwiGLU as Triton kernels, where Triton is installed; see fused/swiglu.py."""

from importlib.util import find_spec

from backends.base import Implementation, MissingDependency, PythonFunction

IMPLEMENTATION: Implementation
if find_spec("triton") is None:
    IMPLEMENTATION = MissingDependency("triton")
else:
    from backends.triton.fused.swiglu import swiglu

    IMPLEMENTATION = PythonFunction(swiglu)
