"""Depthwise F.conv1d in float16 with a filter of 15 taps or more never returns on a CPU with AVX512-FP16."""

import subprocess
import sys

CALL = """
import torch
import torch.nn.functional as F

torch.set_num_threads(1)
input, weight = torch.ones(1, 16, 64, dtype=torch.{dtype}), torch.ones(16, 1, {taps}, dtype=torch.{dtype})
print(F.conv1d(input, weight, groups=16)[0, 0, 0].item(), end="")
"""

for taps, dtype in ((14, "float16"), (15, "float16"), (15, "bfloat16")):
    call = [sys.executable, "-c", CALL.format(taps=taps, dtype=dtype)]
    try:
        said = subprocess.run(call, capture_output=True, text=True, check=True, timeout=20).stdout
    except subprocess.TimeoutExpired:
        said = "no answer in 20 s"
    print(f"{dtype}, {taps} taps: {said}")
