"""The contract's own forward under torch.compile: one line for a user, and what a fused kernel must beat.

Dynamo compiles a variant for each combination of dtypes, layouts, wanted gradients and sizes of 0 and 1. That takes
seconds on CUDA and most of a minute on the CPU for each variant, and a whole run of the suite needs hundreds.
"""

from backends.base import CPU, CUDA, FLOAT32, Backend, Declaration, declarations

_ONCE = "torch.compile: aot_autograd does not support double backward, and its backward graph is not differentiable"
_SAVED_VIEW = (
    "Inductor saves a view of the indices for backward without their version counter: it does not notice that they "
    "were changed in place, and uses the new ones (pytorch#197887)"
)
_PASSES = "torch.compile keeps what each of the log2(length) passes reads for backward, twice the tokens in each pass"
_ATOMIC = "Inductor adds up the gradient of an entry by atomic operations on CUDA, in another order each time"

BACKEND = Backend(
    summary="the reference under torch.compile",
    devices=(CPU, CUDA),
    declared=(
        Declaration("double-backward", _ONCE),
        Declaration("functional-transforms", _ONCE),
        Declaration("memory", _PASSES, operator="scan"),
        Declaration("repeated-backward", _SAVED_VIEW, operator="embedding"),
        *declarations("embedding", _ATOMIC, {"determinism": FLOAT32}, CUDA, by_chance=True),
    ),
    on_request="each kind of call is compiled anew, for seconds to a minute, and the suite makes hundreds of kinds",
)
