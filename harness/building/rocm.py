"""Compile the CUDA sources for AMD: torch's own hipify translates them, hipcc compiles them. No AMD hardware is needed.

Nothing is kept and nothing is run. In a PyTorch build for ROCm, the GPU is the device `cuda` and is judged as such.
"""

from __future__ import annotations

import contextlib
import io
import os
import shutil
import tempfile
from collections.abc import Iterable
from functools import cache
from pathlib import Path

import torch
from torch.utils.hipify import hipify_python

from backends.base import CompiledOperator
from harness.building import build
from harness.errors import Broken, Unavailable

#: Two with wavefronts of 64 threads, two with wavefronts of 32.
ARCHITECTURES = ("gfx90a", "gfx942", "gfx1030", "gfx1100")

#: torch's headers name these two for complex numbers, which no kernel here uses. Debian packages no rocThrust.
_THRUST = """#pragma once
namespace thrust {
template <typename T>
struct complex;
template <typename T>
complex<T> polar(const T& magnitude, const T& angle);
}  // namespace thrust
"""


def hipcc() -> str:
    """Path of AMD's compiler: in `$ROCM_HOME`, else on PATH. Raises Unavailable."""
    home = os.environ.get("ROCM_HOME")
    found = shutil.which("hipcc", path=f"{home}/bin" if home else None)
    if found is None:
        raise Unavailable(
            "no HIP compiler: hipcc is not on PATH; install it (`apt-get install hipcc`) or set ROCM_HOME"
        )
    return found


def translate(operator: CompiledOperator, folder: Path) -> list[Path]:
    """Copy the `.cu` sources and all headers that they may include to `folder`, and translate them there.

    Returns the translated sources. Raises Broken if hipify leaves one out.
    """
    sources = [source for source in operator.sources if source.suffix == ".cu"]
    # Headers of the first folder win, as for a compiler. A source finds the headers beside it before all others.
    for include in (*reversed(operator.include_dirs), *(source.parent for source in sources)):
        for header in include.rglob("*"):
            if header.suffix in build.HEADERS:
                copy = folder / header.relative_to(include)
                copy.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(header, copy)
    copies = [Path(shutil.copy(source, folder)) for source in sources]
    with contextlib.redirect_stderr(io.StringIO()):  # hipify prints in colour that it is done
        results = hipify_python.hipify(
            project_directory=str(folder),
            output_directory=str(folder),
            includes=(f"{folder}/*",),
            extensions=(".cu", *sorted(build.HEADERS)),
            show_progress=False,
            is_pytorch_extension=True,
        )
    translated = [results[str(copy)].hipified_path for copy in copies if str(copy) in results]
    if len(translated) < len(sources) or None in translated:
        raise Broken(f"hipify left out some of {', '.join(source.name for source in sources)}")
    return [Path(str(path)) for path in translated]


def compile_for_architectures(operator: CompiledOperator, architectures: Iterable[str]) -> list[str]:
    """Translate the `.cu` sources and compile them for each of e.g. `("gfx90a", "gfx1100")`.

    Returns one line for each source and architecture. Raises Unavailable without hipcc, Broken with the log.
    """
    # -DUSE_CUDA is on the command line, because hipify rewrites a definition in a source.
    common = ["-std=c++20", "-fPIC", f"-DOPERATOR_NAMESPACE={operator.namespace}", "-DUSE_CUDA", *operator.flags]
    common += ["-isystem", str(Path(torch.__file__).parent / "include"), "-Rpass-analysis=kernel-resource-usage"]
    unknown = {architecture: _what_is_missing_for(architecture) for architecture in architectures}
    if all(unknown.values()):
        raise Unavailable("; ".join(f"{architecture}: {reason}" for architecture, reason in unknown.items()))
    lines = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name).resolve()
        stand_in, sources = folder / "after", folder / "sources"
        (stand_in / "thrust").mkdir(parents=True)
        (stand_in / "thrust" / "complex.h").write_text(_THRUST)
        sources.mkdir()
        options = [*common, f"-I{sources}", "-idirafter", str(stand_in)]
        for source in translate(operator, sources):
            for architecture, reason in unknown.items():
                where = f"{operator.namespace}/{source.name} {architecture}"
                if reason:
                    lines.append(f"{where}: not compiled, {reason}")
                    continue
                log = _compile(
                    architecture, [*options, "-c", str(source), "-o", f"{folder}/out.o"], folder, source.name
                )
                lines.append(f"{where}: {log.count('Function Name:')} kernels")
    return lines


@cache
def _what_is_missing_for(architecture: str) -> str:
    """Why hipcc cannot compile even an empty source for that architecture; empty if it can."""
    with tempfile.TemporaryDirectory() as name:
        empty = Path(name) / "empty.hip"
        empty.touch()
        try:
            _compile(architecture, ["-c", str(empty), "-o", f"{name}/out.o"], Path(name), empty.name)
        except Broken as error:
            said = [line for line in str(error).splitlines() if "error:" in line]
            return said[0].partition("error:")[2].strip() if said else str(error)
    return ""


def _compile(architecture: str, options: list[str], folder: Path, what: str) -> str:
    """Call hipcc for AMD. Without HIP_PLATFORM it would choose NVIDIA's platform if nvcc is there too."""
    command = ["env", "HIP_PLATFORM=amd", hipcc(), f"--offload-arch={architecture}", *options]
    return build.run_compiler(command, folder, what)
