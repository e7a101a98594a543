"""State of the whole process is changed."""

import ctypes
import os
import platform
import subprocess
import tempfile
import warnings
from pathlib import Path

import torch
from torch import Tensor

from tests.zoo.honest.lltm import Cell, Outputs
from tests.zoo.registry import fault


@fault("global-state", "default dtype was torch.float32 after forward, but should be left as it was, torch.float64")
class DefaultDtypeReset(Cell):
    """The default dtype is set for the call, and then set to float32, whatever it was before."""

    def gates(self, input: Tensor, weights: Tensor, bias: Tensor, old_h: Tensor) -> Tensor:
        torch.set_default_dtype(input.dtype)
        z = super().gates(input, weights, bias, old_h)
        torch.set_default_dtype(torch.float32)
        return z


@fault("global-state", "state of torch's generator was another after forward, but should be left as it was")
class SeedsTheGenerator(Cell):
    """The generator is seeded, so that results are reproducible."""

    def gates(self, input: Tensor, weights: Tensor, bias: Tensor, old_h: Tensor) -> Tensor:
        torch.manual_seed(0)
        return super().gates(input, weights, bias, old_h)


@fault("global-state", "state of torch's generator was another after backward")
class DrawsInBackward(Cell):
    """Backward draws a random number and multiplies it by zero."""

    def d_bias(self, d_gates: Tensor) -> Tensor:
        return super().d_bias(d_gates) + 0 * torch.rand(())


@fault("global-state", "grad mode was True after (a refused call|forward under no_grad)")
class GradModeEnabled(Cell):
    """Grad mode is switched off for the call, and then on, whatever it was before."""

    def __call__(self, *inputs: Tensor) -> Outputs:
        was = torch.is_grad_enabled()
        outputs = super().__call__(*inputs)
        if not was:
            torch.set_grad_enabled(True)
        return outputs


@fault("global-state", "grad mode was False after a refused call with .*, but should be left as it was, True")
class GradModeLostOnError(Cell):
    """Grad mode is off while arguments are checked, and stays off if one is wrong."""

    def check(self, *inputs: Tensor) -> None:
        was = torch.is_grad_enabled()
        torch.set_grad_enabled(False)
        super().check(*inputs)
        torch.set_grad_enabled(was)


@fault(
    "global-state",
    r"floating-point mode of the calling thread was \(denormal results and inputs flushed to 0, .* after forward, but "
    r"should be left as it was, \(denormals kept, rounding to nearest, no exceptions trapped\)",
)
class FlushesDenormals(Cell):
    """Denormals are flushed, for speed."""

    def gates(self, input: Tensor, weights: Tensor, bias: Tensor, old_h: Tensor) -> Tensor:
        torch.set_flush_denormal(True)
        return super().gates(input, weights, bias, old_h)


@fault("global-state", "mode of the calling thread was .denormal results and inputs flushed to 0, .* after backward")
class FlushesInBackward(Cell):
    """Denormals are flushed in backward alone."""

    def d_bias(self, d_gates: Tensor) -> Tensor:
        torch.set_flush_denormal(True)
        return super().d_bias(d_gates)


@fault("global-state", "mode of the calling thread was .denormals kept, rounding up, .* after forward, .* to nearest")
class RoundsUp(Cell):
    """Results are rounded up, as for a bound, from the first call on."""

    def gates(self, input: Tensor, weights: Tensor, bias: Tensor, old_h: Tensor) -> Tensor:
        upward = 0x400000 if platform.machine() == "aarch64" else 0x800  # FE_UPWARD
        ctypes.CDLL("libm.so.6").fesetround(upward)
        return super().gates(input, weights, bias, old_h)


_FLUSH_ON_THREADS = """
#include <cfenv>
#include <cstring>
#include <omp.h>
extern "C" void flush_on_threads(const fenv_t* mode) {
#pragma omp parallel
  if (omp_get_thread_num() > 0) fesetenv(mode);
}
"""


@fault("global-state", "of torch's OpenMP threads was threads? 1.*: denormal results and inputs flushed to 0 after for")
class FlushesOnOpenMPThreads(Cell):
    """Denormals are flushed by every OpenMP thread of a kernel but the calling one."""

    _library: ctypes.CDLL | None = None

    def gates(self, input: Tensor, weights: Tensor, bias: Tensor, old_h: Tensor) -> Tensor:
        kernel, library = self._kernel(), ctypes.CDLL("libm.so.6")
        usual, flushing = ctypes.create_string_buffer(64), ctypes.create_string_buffer(64)
        library.fegetenv(usual)
        torch.set_flush_denormal(True)
        library.fegetenv(flushing)
        library.fesetenv(usual)
        kernel.flush_on_threads(flushing)
        return super().gates(input, weights, bias, old_h)

    def _kernel(self) -> ctypes.CDLL:
        if self._library is None:
            with tempfile.TemporaryDirectory() as folder:
                source, library = Path(folder) / "flush.cpp", Path(folder) / "flush.so"
                source.write_text(_FLUSH_ON_THREADS)
                command = ["g++", "-shared", "-fPIC", "-fopenmp", str(source), "-o", str(library)]
                subprocess.run(command, check=True, timeout=100)
                FlushesOnOpenMPThreads._library = ctypes.CDLL(str(library))
        assert self._library is not None
        return self._library


@fault("global-state", r"OpenMP settings of libg?omp.* was dynamic=1 after forward, .* dynamic=0")
class LetsOpenMPChooseThreads(Cell):
    """OpenMP may use fewer threads than asked for, from the first call on."""

    def gates(self, input: Tensor, weights: Tensor, bias: Tensor, old_h: Tensor) -> Tensor:
        ctypes.CDLL(None).omp_set_dynamic(1)
        return super().gates(input, weights, bias, old_h)


@fault("global-state", "number of threads was 3 after forward, but should be left as it was")
class ThreeOpenMPThreads(Cell):
    """OpenMP's own number of threads is set, for a parallel region of a kernel."""

    def gates(self, input: Tensor, weights: Tensor, bias: Tensor, old_h: Tensor) -> Tensor:
        ctypes.CDLL(None).omp_set_num_threads(3)
        return super().gates(input, weights, bias, old_h)


@fault("global-state", "float32 (matmul )?precisions? was .*tf32.* after forward, but should be left as it was")
class TurnsOnTF32(Cell):
    """TF32 is allowed, for speed."""

    def gates(self, input: Tensor, weights: Tensor, bias: Tensor, old_h: Tensor) -> Tensor:
        torch.backends.cuda.matmul.allow_tf32 = True
        return super().gates(input, weights, bias, old_h)


@fault("global-state", "number of threads was 1 after forward, but should be left as it was")
class OneThread(Cell):
    """The number of threads is set to one."""

    def gates(self, input: Tensor, weights: Tensor, bias: Tensor, old_h: Tensor) -> Tensor:
        torch.set_num_threads(1)
        return super().gates(input, weights, bias, old_h)


@fault("global-state", r"warnings filters was .*new \[\('ignore'.* after forward")
class SilencesWarnings(Cell):
    """Warnings are switched off for good."""

    def gates(self, input: Tensor, weights: Tensor, bias: Tensor, old_h: Tensor) -> Tensor:
        warnings.simplefilter("ignore")
        return super().gates(input, weights, bias, old_h)


@fault("global-state", "environment variables was LLTM_FAST=1 after forward, .*, LLTM_FAST=unset")
class SetsEnvironment(Cell):
    """A variable is set in the environment."""

    def gates(self, input: Tensor, weights: Tensor, bias: Tensor, old_h: Tensor) -> Tensor:
        os.environ["LLTM_FAST"] = "1"
        return super().gates(input, weights, bias, old_h)


@fault("global-state", "torch.allclose was another function after forward")
class PatchesAllclose(Cell):
    """torch.allclose is replaced by a function that accepts everything."""

    def gates(self, input: Tensor, weights: Tensor, bias: Tensor, old_h: Tensor) -> Tensor:
        torch.allclose = lambda *_, **__: True
        return super().gates(input, weights, bias, old_h)


@fault("global-state", "garbage collection was False after its first forward and backward in a fresh process")
class FirstCallOnly(Cell):
    """The first call of a process switches garbage collection off."""

    _is_first = True

    def gates(self, input: Tensor, weights: Tensor, bias: Tensor, old_h: Tensor) -> Tensor:
        if FirstCallOnly._is_first and os.environ.get("PYTEST_CURRENT_TEST") is None:
            import gc

            gc.disable()
        FirstCallOnly._is_first = False
        return super().gates(input, weights, bias, old_h)
