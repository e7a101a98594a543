"""The contract's own forward under torch.compile: one line for a user, and what a fused kernel must beat.

Dynamo compiles a variant for each combination of dtypes, layouts, wanted gradients and sizes of 0 and 1. That takes
seconds on CUDA and most of a minute on the CPU for each variant, and a whole run of the suite needs hundreds.
"""

from backends.base import CPU, CUDA, Backend, Declaration

_ONCE = "torch.compile: aot_autograd does not support double backward, and its backward graph is not differentiable"

BACKEND = Backend(
    summary="the reference under torch.compile",
    devices=(CPU, CUDA),
    declared=(
        Declaration("double-backward", _ONCE),
        Declaration("functional-transforms", _ONCE),
    ),
    on_request="each kind of call is compiled anew, for seconds to a minute, and the suite makes hundreds of kinds",
)
