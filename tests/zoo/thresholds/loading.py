"""A drawn file in a temporary folder, imported as a candidate."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from harness.candidate import candidate
from harness.discovery import load_candidate


@contextmanager
def loaded(operator: str, source: str) -> Iterator[Callable[..., Any]]:
    """The function of that text, while its file exists. Raises Broken if it does not import."""
    with TemporaryDirectory() as folder:
        file = Path(folder, f"{operator}.py")
        file.write_text(source)
        function, _ = load_candidate(candidate(f"{operator}={file}:{operator}"))
        yield function
