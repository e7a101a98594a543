"""What Triton's interpreter lacks that kernels of packages use. Compiled kernels need none of it.

It refuses a tensor as the bound of a range (with numpy 2.4), passes a float as a Python number, which has no `to`, and
has no functions of libdevice. `complete` supplies them, alike for the release with a defect and for the repaired one.
"""

from __future__ import annotations

import os
from typing import Any

import numpy as np


def complete() -> None:
    """Supply what is missing, before a package is imported. Where kernels are compiled, nothing is changed."""
    if os.environ.get("TRITON_INTERPRET") != "1":
        return
    import triton.language as tl
    from triton.language.extra import libdevice
    from triton.runtime import interpreter

    patch, convert = interpreter._patch_lang_tensor, interpreter._implicit_cvt

    def patched(tensor: Any, scope: Any) -> None:
        patch(tensor, scope)
        scope.set_attr(tensor, "__index__", lambda self: int(self.handle.data.item()))

    def converted(argument: Any) -> Any:
        if isinstance(argument, float):  # Triton passes it in float32
            return tl.tensor(interpreter.TensorHandle(np.array([argument], dtype=np.float32), tl.float32), tl.float32)
        return convert(argument)

    interpreter._patch_lang_tensor, interpreter._implicit_cvt = patched, converted
    libdevice.rsqrt = lambda x: 1.0 / tl.sqrt(x)
