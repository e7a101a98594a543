"""The mutated files, how many mutants of each are drawn, and how a mutant of each is built."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from backends.base import CPU, CUDA_EMULATED, CompiledOperator
from harness import discovery
from harness.building import build
from harness.building.cache import cache_root
from tools.mutation.operators import Mutant, mutants, sample

ROOT = Path(__file__).parents[2]
BACKENDS = ROOT / "backends"
OPERATOR = "lltm"
SEED = 20240607

#: Optimisation of mutants. -O1 compiles a .cu file in half the time of -O2, and speed is not judged.
OPTIMISATION = "-O1"
HEADER = "precompiled header"


@dataclass(frozen=True)
class Source:
    """A file under backends/. Its mutants are judged inside `hosts` in turn, until one of them notices.

    `rebuilt` are the suffixes of the sources that depend on it; all other objects are the unmutated ones.
    """

    file: str
    limit: int
    hosts: tuple[str, ...]
    rebuilt: tuple[str, ...] = ()

    @property
    def has_kernels(self) -> bool:
        """Whether its mutants are in code that runs on the device."""
        return ".cu" in self.rebuilt

    @property
    def group(self) -> str:
        """The group of its score: a backend, or the code that several share."""
        return discovery.public_name(self.file.split("/")[0]) if self.file[0] != "_" else self.file.split("/")[0]

    def drawn(self, everything: bool) -> tuple[list[Mutant], int]:
        """The mutants to judge, and how many there are."""
        found = mutants(self.file, (BACKENDS / self.file).read_text())
        return (found if everything else sample(found, self.limit, SEED)), len(found)


#: A .cpp file takes some 6 s to compile, a .cu file 1 s, a Python file nothing: the limits say so.
SOURCES = (
    Source("python_autograd/lltm.py", 16, ("python-autograd",)),
    Source("python_manual_backward/lltm.py", 36, ("python-manual-backward",)),
    Source("_cuda/lltm_math.h", 24, ("cuda-accessor", "cuda-raw-pointer"), (".cu",)),
    Source("_cuda/launch.h", 16, ("cuda-accessor", "cuda-raw-pointer"), (".cu",)),
    Source("_cuda/vectors.h", 10, ("cuda-raw-pointer",), (".cu",)),
    Source("cuda_raw_pointer/csrc/lltm.cu", 26, ("cuda-raw-pointer",), (".cu",)),
    Source("cuda_accessor/csrc/lltm.cu", 22, ("cuda-accessor",), (".cu",)),
    Source("cuda_accessor/csrc/addressing.h", 7, ("cuda-accessor",), (".cu",)),
    Source("cuda_raw_pointer/csrc/lltm.cpp", 4, ("cuda-raw-pointer",), (".cpp",)),
    Source("cuda_accessor/csrc/lltm.cpp", 2, ("cuda-accessor",), (".cpp",)),
    Source("cuda_accessor/csrc/matrix.h", 3, ("cuda-accessor",), (".cpp",)),
    Source("_cuda/lltm_operator.h", 6, ("cuda-raw-pointer", "cuda-accessor"), (".cpp",)),
    Source("_cuda/operator.h", 3, ("cuda-raw-pointer", "cuda-accessor"), (".cpp",)),
    Source("_native/arguments.h", 4, ("aten-cpp",), (".cpp",)),
    Source("_native/autograd.h", 4, ("aten-cpp",), (".cpp",)),
    Source("_native/registration.h", 6, ("aten-cpp",), (".cpp",)),
    Source("_native/lltm_autograd.h", 10, ("aten-cpp", "cuda-raw-pointer"), (".cpp",)),
    Source("aten_cpp/csrc/lltm.cpp", 6, ("aten-cpp",), (".cpp",)),
)


def device_of(host: str) -> str:
    """The device on which a backend is judged on a machine without CUDA."""
    devices = discovery.backend(host).backend.devices
    return CPU if CPU in devices else CUDA_EMULATED


@dataclass(frozen=True)
class Job:
    """Commands for the builder. It runs them one after the other in `folder`, after all jobs of `needs`."""

    id: str
    folder: Path
    commands: tuple[tuple[str, ...], ...]
    needs: tuple[str, ...] = ()


class Workshop:
    """A folder in which the compiled backends are built from copies: unmutated objects once, mutants on request."""

    def __init__(self, folder: Path, hosts: Sequence[str]) -> None:
        self._folder = folder
        self._plans: dict[str, build.Build] = {}
        for host in hosts:
            implementation = discovery.backend(host).implementation(OPERATOR)
            if isinstance(implementation, CompiledOperator):
                self._plans[host] = build.plan(implementation, device_of(host))
        self._header = folder / "precompiled" / "torch_headers.h"

    def is_compiled(self, host: str) -> bool:
        return host in self._plans

    def header_job(self) -> Job:
        """The headers of torch, precompiled: a .cpp file then compiles in half the time."""
        self._header.parent.mkdir()
        self._header.write_text("".join(f"{line}\n" for line in self._system_includes()))
        some = next(iter(self._plans.values())).steps[-1].command
        command = (*_tuned(some[: some.index("-c")]), "-x", "c++-header", self._header.name)
        return Job(HEADER, self._header.parent, (command,))

    def objects_job(self, host: str) -> Job:
        """The unmutated objects of a backend, to link with its mutants; from the cache if possible."""
        plan, tree = self._plans[host], self._folder / host
        tree.mkdir()
        commands = []
        for step in plan.steps:
            kept = self._kept(plan) / step.output
            if kept.exists():
                shutil.copyfile(kept, tree / step.output)
            else:
                commands.append(_tuned(step.command))
        return Job(f"objects of {host}", tree, tuple(commands))

    def keep_objects(self, host: str) -> None:
        """Put the objects of `objects_job` into the cache."""
        plan = self._plans[host]
        self._kept(plan).mkdir(parents=True, exist_ok=True)
        for step in plan.steps:
            if not (self._kept(plan) / step.output).exists():
                new = self._kept(plan) / f"{step.output}.{os.getpid()}"
                shutil.copyfile(self._folder / host / step.output, new)
                os.replace(new, self._kept(plan) / step.output)

    @staticmethod
    def _kept(plan: build.Build) -> Path:
        return cache_root() / f"mutation-{plan.name}-{plan.key}{OPTIMISATION}"

    def honest_job(self, host: str) -> Job:
        """The unmutated backend, linked in the same way as the mutants."""
        plan, tree = self._plans[host], self._folder / host
        objects = [str(tree / step.output) for step in plan.steps]
        return Job(f"honest {host}", tree, (_linked(plan, objects, ()),), (f"objects of {host}",))

    def mutant_job(self, source: Source, mutant: Mutant, host: str, extra: tuple[str, ...] = ()) -> Job:
        """The backend with the mutant; `extra` flags go to the recompiled sources and to the linker."""
        plan = self._plans[host]
        name = re.sub(r"\W+", "_", f"{mutant.id} in {host} {' '.join(extra)}").strip("_")
        tree = self._folder / "mutants" / name
        shutil.copytree(BACKENDS, tree, ignore=shutil.ignore_patterns("__pycache__", "*.py"))
        (tree / mutant.file).write_text(mutant.text)
        commands, objects = [], []
        needs = [f"objects of {host}"]
        for step in plan.steps:
            # A narrower member changes a struct that all users of a header share.
            if step.source.suffix not in source.rebuilt and mutant.edit.operator != "narrow-type":
                objects.append(str(self._folder / host / step.output))
                continue
            command = [part.replace(str(BACKENDS), str(tree)) for part in _tuned(step.command)]
            if step.source.suffix == ".cpp" and not extra:
                command[1:1] = ["-include", str(self._header), "-Winvalid-pch"]
                needs.append(HEADER)
            commands.append((*command[:1], *extra, *command[1:]))
            objects.append(str(tree / step.output))
        return Job(name, tree, (*commands, _linked(plan, objects, extra)), tuple(needs))

    def unmutated_job(self, source: Source, mutant: Mutant, host: str, extra: tuple[str, ...]) -> Job:
        """The backend built in the same way, but without the mutant."""
        right = replace(mutant, text=(BACKENDS / source.file).read_text(), index=0)
        return self.mutant_job(source, right, host, extra)

    def library(self, job: Job) -> Path:
        return job.folder / "mutant.so"

    def _system_includes(self) -> list[str]:
        """The headers of torch and of the standard library that the .cpp sources include, each once."""
        texts = [file.read_text() for plan in self._plans.values() for file in self._text_files(plan)]
        found = {line for text in texts for line in re.findall(r"^#include <[\w/.]+>", text, re.MULTILINE)}
        return sorted(line for line in found if "cuda_runtime" not in line)

    @staticmethod
    def _text_files(plan: build.Build) -> list[Path]:
        sources = [step.source for step in plan.steps if step.source.suffix == ".cpp"]
        native = ("arguments.h", "autograd.h", "registration.h", "lltm_autograd.h")
        headers = [*(f"_native/{name}" for name in native), "_cuda/lltm_operator.h", "_cuda/operator.h"]
        return [*sources, *(BACKENDS / name for name in headers)]


def _tuned(command: Sequence[str]) -> tuple[str, ...]:
    return tuple(OPTIMISATION if part == "-O2" else part for part in command)


def _linked(plan: build.Build, objects: list[str], extra: tuple[str, ...]) -> tuple[str, ...]:
    # gold needs a third of the time of the default linker.
    linker = ["-fuse-ld=gold"] if shutil.which("ld.gold") else []
    return (*plan.link[:2], *linker, *extra, "-o", "mutant.so", *objects, *plan.link[2:])
