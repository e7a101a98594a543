"""Fake tensors on a GPU that is not the current one, in a process without a GPU: nothing leaves their device.

The inputs are fake tensors on cuda:1, then cuda:2, then cuda:3, while cuda:0 is current. Right is:

- Outputs and gradients are on the device of the inputs. What is created on the way may be elsewhere, if PyTorch
  accepts it: a copy on the CPU, or a single number.
- "cuda" without an index, or `torch.cuda.current_device()`, is right where the function has made the device of its
  inputs the current one (`with torch.cuda.device(input.device)`), and wrong elsewhere.
- An implementation that does not run on CUDA at all may refuse: every CUDA device, the first one too, with an error
  that names CUDA. An error about tensors of two devices is no refusal.

Not judged is a function that fails with fake tensors of the CPU already (fake-tensors says what is wrong), or that asks
for what only a GPU has: a stream, an event, properties of the device. Neither is the device that a kernel runs on,
because no kernel runs: other-device judges that on a machine with two GPUs.
"""

from __future__ import annotations

from typing import Any

from backends.base import CPU, SIMULATED
from harness.errors import Failure, NoEvidence, NotApplicable, Unavailable
from harness.judging import fake_devices, fresh_process, fresh_subject
from harness.judging.property import INTEGRATION, Property
from harness.judging.subject import Subject
from harness.report.levels import PRODUCTION


def check(subject: Subject) -> dict[str, Any]:
    """Forward and backward on each device, in a fresh process."""
    why_not = fresh_subject.why_not(subject)
    if why_not:
        raise NotApplicable(f"needs a fresh process, but {why_not}")
    try:
        found = fake_devices.asked(subject)
    except Unavailable as lack:
        raise NotApplicable(f"needs a compiler, but {lack}") from lack
    except fresh_process.TooLate as error:
        raise Failure(f"took more than {fake_devices.LIMIT:g} s with fake tensors, but should return") from error
    except fresh_process.NoAnswer as error:
        raise NoEvidence(f"the process without devices ended with: {error}") from error
    if "failure" in found:
        raise Failure(found["failure"])
    if "lacks" in found:
        raise NotApplicable(found["lacks"])
    return dict(found)


PROPERTY = Property(
    "fake-devices",
    "without a GPU, fake tensors of cuda:1 to cuda:3 stay on their device",
    check,
    view=INTEGRATION,
    level=PRODUCTION,
    dtypes=("float32",),
    devices=(CPU, *SIMULATED),
    why_only="devices are the same code in every dtype; on a machine with GPUs other-device uses real ones",
)
