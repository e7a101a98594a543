"""The contract's own forward under torch.compile: one line for a user, and what a fused kernel must beat.

Dynamo compiles a variant for each combination of dtypes, layouts, wanted gradients and sizes of 0 and 1. That takes
seconds on CUDA and most of a minute on the CPU for each variant, and a whole run of the suite needs hundreds.
"""

from backends.base import CPU, CUDA, FLOAT32, FLOAT64, Backend, Declaration, declarations

_TRANSFORMS = (
    "aot_autograd refuses some transforms of a compiled function, as it refuses a second differentiation; which ones "
    "depends on the operator and on the version of PyTorch"
)
_SAVED_VIEW = (
    "Inductor saves a view of an input for backward without its version counter: it does not notice that the input was "
    "changed in place, and uses the new values (pytorch#197887)"
)
_STRIDES = (
    "Inductor asserts the strides of what it saved for backward: a hook that returns the values as a contiguous "
    "tensor, as save_on_cpu does, makes it fail where it saved a slice"
)
_PASSES = "torch.compile keeps what each of the log2(length) passes reads for backward, twice the tokens in each pass"
_ATOMIC = "Inductor adds up the gradient of an entry by atomic operations on CUDA, in another order each time"
#: Operators whose backward reads a view of an input.
_READS_A_VIEW = ("attention", "attention_varlen", "embedding")

BACKEND = Backend(
    summary="the reference under torch.compile",
    devices=(CPU, CUDA),
    declared=(
        Declaration("functional-transforms", _TRANSFORMS, by_chance=True),
        Declaration("memory", _PASSES, operator="scan"),
        *(Declaration("repeated-backward", _SAVED_VIEW, operator=name) for name in _READS_A_VIEW),
        # In half types it reads a copy in float32.
        *declarations("group_norm", _SAVED_VIEW, {"repeated-backward": FLOAT32 + FLOAT64}),
        *(Declaration("autograd-hooks", _STRIDES, operator=name) for name in ("gru_cell", "scan")),
        *declarations("embedding", _ATOMIC, {"determinism": FLOAT32 + FLOAT64}, CUDA, by_chance=True),
    ),
    on_request="each kind of call is compiled anew, for seconds to a minute, and the suite makes hundreds of kinds",
)
