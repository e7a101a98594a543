"""The command-line options that say what to judge: the same for pytest and for every command."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from harness.candidate import by_forward, forward_name
from harness.deriving.contract import contract_file
from harness.deriving.forward_contract import forward_contract
from harness.errors import UsageError
from harness.running.selection import Selection

#: Each is repeatable.
MEANINGS = {
    "operator": "judge this operator; default: all",
    "backend": "judge this backend; default: all, or none where --candidate is given",
    "device": "cpu, cuda, cuda-emulated or triton-interpreted; default: all that this machine has",
    "dtype": "float32, float64, float16 or bfloat16; default: all",
    "candidate": "judge any function: OPERATOR=FILE.py:FUNCTION or OPERATOR=package.module:FUNCTION",
    "backend-path": "a backend's folder, or a folder of backends, outside this repository",
    "spec-path": "a contract's file outside this repository",
}
#: Those that are given once. They need `reference`, and derive the contract that the candidates are judged by.
OF_A_REFERENCE = {
    "reference": "judge candidates by this slow function that you trust: FILE.py:FUNCTION or package.module:FUNCTION",
    "example": "a function that returns the arguments of one call of the reference, where its annotations do not say "
    "their shapes: FILE.py:FUNCTION",
}
FORWARD_ONLY = "judge candidates for inference: they have no backward, and no gradient is asked"


def add(add_option: Callable[..., Any], names: Sequence[str] = tuple(MEANINGS)) -> None:
    """Declare the options with `add_argument` of argparse or `addoption` of pytest."""
    for name in names:
        add_option(
            f"--{name}", action="append", default=[], metavar=name.upper(), help=f"{MEANINGS[name]} (repeatable)"
        )
    if "spec-path" in names:
        for name, meaning in OF_A_REFERENCE.items():
            add_option(f"--{name}", default="", metavar=name.upper(), help=meaning)
        add_option("--forward-only", action="store_true", help=FORWARD_ONLY)


def read(given: argparse.Namespace, sanitize: bool = False) -> Selection:
    """What was asked for; an option that was not declared counts as not given."""

    def texts(name: str) -> tuple[str, ...]:
        return tuple(getattr(given, name, ()))

    candidates, operators, paths = texts("candidate"), texts("operator"), tuple(map(Path, texts("spec_path")))
    reference, example = getattr(given, "reference", ""), getattr(given, "example", "")
    forward_only, derived = getattr(given, "forward_only", False), ""
    if forward_only and not candidates:
        raise UsageError("--forward-only was given without --candidate: backends are judged with their gradients")
    if example and not reference:
        raise UsageError("--example was given without --reference, the function whose arguments it returns")
    if reference:
        path, derived = contract_file(reference, example, forward_only)
        paths += (path,)
        candidates = tuple(text if "=" in text else f"{derived}={text}" for text in candidates)
    if forward_only:
        named = dict.fromkeys(text.partition("=")[0] for text in candidates if "=" in text)
        named.pop(derived, None)  # its contract asks no gradient already
        paths += tuple(forward_contract(name, paths) for name in named)
        operators = tuple(forward_name(name) if name in named else name for name in operators)
        candidates = tuple(by_forward(text) if text.partition("=")[0] in named else text for text in candidates)
    return Selection(
        operators=operators,
        backends=texts("backend"),
        devices=texts("device"),
        dtypes=texts("dtype"),
        candidates=candidates,
        backend_paths=tuple(map(Path, texts("backend_path"))),
        spec_paths=paths,
        sanitize=sanitize,
    )
