"""The machine and the software of a run, as the report records them."""

from __future__ import annotations

import contextlib
import os
import platform
import shutil
import subprocess
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from types import ModuleType
from typing import Any

import torch

from backends.base import CompiledOperator
from harness import discovery
from harness.building import build
from harness.errors import HarnessError, Unavailable

_ROOT = Path(__file__).parents[2]


def describe() -> dict[str, Any]:
    """Facts that a verdict may depend on. An unknown fact is null, never left out."""
    return {
        "python": platform.python_version(),
        "torch": torch.__version__,
        "torch_git": torch.version.git_version,
        "cuda": torch.version.cuda,
        "cudnn": _cudnn(),
        "driver": _driver(),
        "gpu": torch.cuda.get_device_name() if torch.cuda.is_available() else None,
        "gpus": torch.cuda.device_count(),
        "architecture": _architecture(),
        "cpu": _cpu(),
        "threads": torch.get_num_threads(),
        "system": f"{platform.system()} {platform.machine()}",
        "compiler": _compiler(),
        "nvcc": _nvcc(),
        "flags": _flags(),
        "packages": _packages(),
        "tf32": {
            "matmul": torch.backends.cuda.matmul.allow_tf32,
            "cudnn": torch.backends.cudnn.allow_tf32,
            "float32_matmul_precision": torch.get_float32_matmul_precision(),
        },
        **_commit(),
        "time": datetime.now(UTC).isoformat(timespec="seconds"),
    }


def prepare() -> None:
    """Find out now what takes long and does not change while this process lives, without CUDA."""
    _compiler()
    _nvcc()
    _flags()


def _cudnn() -> str | None:
    if not torch.cuda.is_available():
        return None
    number: int | None = torch.backends.cudnn.version()  # type: ignore[no-untyped-call]
    return None if number is None else f"{number // 10000}.{number // 100 % 100}.{number % 100}"


def _driver() -> str | None:
    """The version of the GPU driver: from its kernel module, else from nvidia-smi."""
    file = Path("/sys/module/nvidia/version")
    if file.exists():
        return file.read_text().strip()
    program = shutil.which("nvidia-smi")
    if program is None:
        return None
    answer = _first_line(_output(program, "--query-gpu=driver_version", "--format=csv,noheader"))
    return answer if answer and answer[0].isdigit() else None


def _architecture() -> str | None:
    if not torch.cuda.is_available():
        return None
    major, minor = torch.cuda.get_device_capability()
    return f"sm_{major}{minor}"


def _cpu() -> str | None:
    info = Path("/proc/cpuinfo")
    if not info.exists():
        return platform.processor() or None
    names = [line.split(":", 1)[1].strip() for line in info.read_text().splitlines() if line.startswith("model name")]
    return names[0] if names else None


def _compiler() -> str | None:
    try:
        return _first_line(build.compiler_version(build.host_compiler()))
    except Unavailable:
        return None


def _nvcc() -> str | None:
    try:
        said = build.compiler_version(str(build.cuda_home() / "bin" / "nvcc"))
    except Unavailable:
        return None
    return next((line for line in said.splitlines() if "release" in line), _first_line(said))


def _flags() -> dict[str, str]:
    """The compiler flags of each compiled backend, without paths and the architecture.

    Only backends with sources for a compiler are imported: Triton, for example, takes as long as torch.
    """
    found = {}
    with contextlib.suppress(HarnessError):  # the cells of a broken backend report it
        for name, backend in discovery.all_backends().items():
            for operator in discovery.operators() if _has_sources(backend.package) else ():
                implementation = backend.implementation(operator)
                if isinstance(implementation, CompiledOperator):
                    found[f"{name}/{operator}"] = " ".join((*build.HOST_FLAGS, *implementation.flags))
    return found


def _has_sources(package: ModuleType) -> bool:
    return any(file.suffix in (".cpp", ".cu") for file in Path(str(package.__file__)).parent.rglob("*"))


def _packages() -> dict[str, str]:
    """The version of each package that backends need, by the name that pip knows, where all of it is installed."""
    found = {}
    with contextlib.suppress(HarnessError):
        there = [each for each in discovery.all_backends().values() if not each.missing()]
        wanted = {what for each in there for what in each.backend.needs.values()}
        for what in sorted(wanted):
            with contextlib.suppress(PackageNotFoundError):
                found[what] = version(what)
    return found


def _commit() -> dict[str, Any]:
    """The commit of the suite. LLTM_CONFORMANCE_COMMIT overrides it, for a copy with another history or none."""
    given = os.environ.get("LLTM_CONFORMANCE_COMMIT")
    return {"commit": given, "dirty": None} if given else {"commit": _git("rev-parse", "HEAD"), "dirty": _dirty()}


def _dirty() -> bool | None:
    changes = _output("git", "-C", str(_ROOT), "status", "--porcelain", "--untracked-files=no")
    return None if changes is None else bool(changes.strip())


def _git(*arguments: str) -> str | None:
    """Output of git in the suite's own folder, if that is a repository; never in the working folder."""
    return _first_line(_output("git", "-C", str(_ROOT), *arguments))


def _output(*command: str) -> str | None:
    """The output of a program; None if it is missing, fails or hangs."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout if done.returncode == 0 else None


def _first_line(text: str | None) -> str | None:
    lines = (text or "").strip().splitlines()
    return lines[0] if lines else None
