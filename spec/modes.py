"""The base of the modes that look at each operation of a reference."""

from __future__ import annotations

from torch.utils._python_dispatch import TorchDispatchMode


class EagerMode(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """A mode that is used in eager code alone.

    torch would import the compiler at the first operation, to keep it out of the mode. That takes a second, and no
    reference is compiled.
    """

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        return False
