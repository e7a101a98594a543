"""The contract's own forward under torch.compile: one line for a user, and what a fused kernel must beat.

Dynamo compiles a variant for each combination of dtypes, layouts, wanted gradients and sizes of 0 and 1. That takes
seconds on CUDA and most of a minute on the CPU for each variant, and a whole run of the suite needs hundreds.
"""

import torch

from backends.base import CPU, CUDA, Backend, Declaration

_ONCE = "torch.compile: aot_autograd does not support double backward, and its backward graph is not differentiable"
_OTHERWISE = (
    "torch.compile fuses a forward that saves for backward otherwise than one that does not, and so rounds bfloat16 at "
    "other places: the values with and without grad differ in bits"
)

BACKEND = Backend(
    summary="the reference under torch.compile",
    devices=(CPU, CUDA),
    declared=(
        Declaration("double-backward", _ONCE),
        Declaration("functional-transforms", _ONCE),
        Declaration("inference-modes", _OTHERWISE, operator="lltm_sequence", device=CUDA, dtype=torch.bfloat16),
    ),
    on_request="each kind of call is compiled anew, for seconds to a minute, and the suite makes hundreds of kinds",
)
