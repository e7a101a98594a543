"""Which lines and branches of the C++ and CUDA sources of a backend no call reaches: a build for gcov, and its counts.

The sources are compiled with `--coverage` and without optimisation, CUDA's for the emulation. A process of its own
judges every property that needs no fresh process, and writes the counts when it ends. A template is one line however
many types it is made for: a line counts as reached if one of them reached it. Branches that only an exception takes are
left out. Nothing but the sources of this build is seen: neither ATen's kernels nor code for a GPU.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from backends.base import CUDA, CompiledOperator
from harness.building import build
from harness.building.cache import cache_root, expected_root
from harness.errors import Broken, Unavailable, UnknownName, UsageError
from harness.judging import stored
from harness.judging.judge import judge
from harness.judging.subject import Subject
from harness.properties import all_properties
from harness.report.cell import FAIL
from harness.running.selection import Selection, Slot, slots

#: Seconds for the calls of one backend: the unoptimised build is some ten times as slow.
_LIMIT = 1800.0
#: Properties that load the library in a process of their own, where it would be another build, or that take long for
#: addresses alone.
LEFT_OUT = frozenset({"fake-devices", "many-elements", "multiprocessing", "wide-offsets"})


@dataclass
class Source:
    """What calls did in one file: by line how often it ran, and how often each of its branches was taken."""

    path: str
    lines: dict[int, int] = field(default_factory=dict)
    branches: dict[int, list[int]] = field(default_factory=dict)

    def add(self, line: int, count: int, branches: Sequence[int]) -> None:
        """Count one more function's, or type's, share of a line."""
        self.lines[line] = self.lines.get(line, 0) + count
        known = self.branches.setdefault(line, [0] * len(branches))
        if len(known) == len(branches):
            self.branches[line] = [one + other for one, other in zip(known, branches, strict=True)]
        elif sum(branches) > sum(known):  # the types differ in their code: the one that ran most counts
            self.branches[line] = list(branches)

    def unreached(self) -> list[int]:
        """The lines that no call ran."""
        return sorted(line for line, count in self.lines.items() if not count)

    def untaken(self) -> list[int]:
        """The lines that ran, of which a branch was never taken."""
        return sorted(line for line, taken in self.branches.items() if self.lines[line] and 0 in taken)


def flags(folder: Path) -> tuple[str, ...]:
    """Flags of the compiler that puts its notes, and the counts, into that folder."""
    return ("--coverage", "-O0", "-fprofile-update=atomic", "-dumpdir", f"{folder}/")


def measured(selection: Selection, properties: Sequence[str] = ()) -> Iterator[tuple[Slot, list[Source], list[str]]]:
    """For each backend and device: what its calls did in its sources, and the properties that failed.

    The dtypes of the selection are judged together, by these properties or by all. Raises Unavailable, Broken,
    UsageError, UnknownName.
    """
    known = {name: each for name, each in all_properties().items() if name not in LEFT_OUT}
    for name in properties:
        if name not in known:
            raise UnknownName("property", name, known)
    if shutil.which(_gcov()) is None:
        raise Unavailable(f"{_gcov()} is not on PATH; it comes with gcc")
    places: dict[tuple[str, str, str], list[Slot]] = {}
    for slot in slots(selection):
        found = slot.compiled()
        if found is not None and slot.device != CUDA:
            places.setdefault((slot.operator.name, slot.backend, slot.device), []).append(slot)
    if not places:
        raise UsageError("nothing to measure: the selection has no backend with compiled sources")
    for some in places.values():
        source = some[0].compiled()
        assert source is not None
        folder = _folder(source, some[0].device)
        failed = _called(some, folder, properties or tuple(known))
        yield some[0], read(folder, _own_folders(source)), failed


def _folder(source: CompiledOperator, device: str) -> Path:
    """The folder of the notes that belong to the library as it is, which is built again if they are gone."""
    folder = cache_root() / "gcov" / build.library_name(source, device)
    made, stamp = build.plan(source, device, flags(folder)), folder / "key"
    if not stamp.exists() or stamp.read_text() != made.key:
        shutil.rmtree(folder, ignore_errors=True)
        shutil.rmtree(made.folder, ignore_errors=True)
        folder.mkdir(parents=True)
        build.build(source, device, flags(folder))
        stamp.write_text(made.key)
    for counts in folder.glob("*.gcda"):
        counts.unlink()
    return folder


def _called(some: Sequence[Slot], folder: Path, properties: Sequence[str]) -> list[str]:
    """Judge the slots in a process of their own; the properties that failed. Raises Broken if it did not end well."""
    dtypes = ",".join(str(slot.dtype).removeprefix("torch.") for slot in some)
    place = [some[0].operator.name, some[0].backend, some[0].device, str(folder), dtypes, *properties]
    command = [sys.executable, "-m", __name__, *place]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    try:
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=_LIMIT)
    except subprocess.TimeoutExpired:
        raise Broken(f"the calls of {some[0].id} were still running after {_LIMIT:.0f} s") from None
    if done.returncode != 0:
        raise Broken(f"the calls of {some[0].id} ended with {done.returncode}:\n{done.stdout}{done.stderr}")
    found: list[str] = json.loads(done.stdout.splitlines()[-1])
    return found


def _own_folders(source: CompiledOperator) -> tuple[Path, ...]:
    return tuple({path.resolve() for path in (*source.include_dirs, *(file.parent for file in source.sources))})


def _gcov() -> str:
    """gcov of the compiler that is used: `g++-12` has `gcov-12`."""
    name = Path(build.host_compiler()).resolve().name
    return f"gcov{name[name.index('-', name.index('g++')) :]}" if "g++-" in name else "gcov"


def read(folder: Path, own: Iterable[Path]) -> list[Source]:
    """The counts in a folder, of the files below `own`, by their paths. Raises Broken."""
    roots, found = tuple(own), dict[Path, Source]()
    for counts in sorted(folder.glob("*.gcda")):
        command = [_gcov(), "--json-format", "--stdout", "--branch-probabilities", str(counts)]
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
        if done.returncode != 0 or not done.stdout.strip():
            raise Broken(f"{_gcov()} cannot read {counts.name}: {done.stderr.strip()}")
        for file in json.loads(done.stdout)["files"]:
            path = Path(file["file"]).resolve()
            if any(path.is_relative_to(root) for root in roots):
                _add(found.setdefault(path, Source(str(path))), file["lines"])
    return [found[path] for path in sorted(found)]


def _add(source: Source, lines: Iterable[dict[str, Any]]) -> None:
    for line in lines:
        branches = [branch["count"] for branch in line["branches"] if not branch["throw"]]
        source.add(line["line_number"], line["count"], branches if len(branches) > 1 else [])


def record(place: Slot, sources: Iterable[Source], failed: Sequence[str]) -> dict[str, Any]:
    """What was measured, for JSON."""
    files = [{**asdict(source), "unreached": source.unreached(), "untaken": source.untaken()} for source in sources]
    names = {"operator": place.operator.name, "backend": place.backend, "device": place.device}
    return {**names, "failed": list(failed), "files": files}


# In the process that makes the calls


def _main() -> None:
    operator, backend, device, folder, dtypes, *properties = sys.argv[1:]
    selection = Selection((operator,), (backend,), (device,), tuple(dtypes.split(",")))
    failed: dict[str, None] = {}
    for slot in slots(selection):
        source = slot.compiled()
        assert source is not None
        function = build.load(source, device, flags(Path(folder)))
        subject = Subject(slot.operator, backend, device, slot.dtype, function, files=slot.files())
        for name in properties:
            property = all_properties()[name]
            with stored.used(expected_root()):
                if slot.is_asked(property) and judge(subject, property).verdict == FAIL:
                    failed[name] = None
    print(json.dumps(list(failed)))


if __name__ == "__main__":
    _main()
