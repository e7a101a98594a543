"""AddressSanitizer and UBSan in the process of a candidate: what it compiles there is built with them.

`torch.utils.cpp_extension` and most build tools call the compiler that `$CXX` names. In this process that is a script,
which adds the flags of the sanitizers. A finding ends the process. AddressSanitizer writes it to a file of the scratch
folder. UBSan, as a library beside AddressSanitizer, can only print it.
"""

from __future__ import annotations

import re
import secrets
import shlex
import subprocess
from functools import cache
from pathlib import Path

from harness.building import build
from harness.errors import Unavailable
from harness.running import sandbox

#: A sanitizer looks for the exception functions of libstdc++ before Python has loaded it.
_PRELOADED = ("libasan.so", "libstdc++.so.6")
#: Python frees little at its end, and torch reserves gigabytes of addresses: a candidate cannot change that.
_ADDRESS = "detect_leaks=0:allocator_may_return_null=1"
#: One line: a stack of Python's own functions would push it out of the output that is kept.
_UNDEFINED = "print_stacktrace=0"
#: A function that only libraries with AddressSanitizer call.
_MARK = b"__asan_init"
_KIND = re.compile(r"ERROR: AddressSanitizer: (?P<kind>[\w-]+)")
_ACCESS = re.compile(r"^(?P<access>(?:READ|WRITE) of size \d+)", re.MULTILINE)
_FRAME = re.compile(r"^ *#\d+ 0x[0-9a-f]+ in (?P<function>.+) (?P<file>/\S+?):(?P<line>\d+)(?::\d+)?$", re.MULTILINE)
_REGION = re.compile(r"is located (?P<place>\d+ bytes .+?of \d+-byte region)")
_UNDEFINED_FINDING = re.compile(r"^(?P<file>.+?):(?P<line>\d+):\d+: runtime error: (?P<what>.+)$", re.MULTILINE)
#: Frames of the sanitizer itself, such as its memcpy, and of the compiler's headers.
_NOT_THE_CANDIDATE = ("libsanitizer/", "/usr/include/", "/torch/include/")


class Sanitizers:
    """What one process under the sanitizers is started with, and what they say of it."""

    def __init__(self, source: str) -> None:
        """`source` is that of a candidate. Raises Unavailable if the compiler has no AddressSanitizer."""
        self._preloaded = _preloaded(build.host_compiler())
        #: Not the usual scratch folder: that one holds extensions without the sanitizers.
        self.scratch = f"{source} under sanitizers"
        self._folder = sandbox.scratch(self.scratch)
        # Processes of several workers have the same folder, and may have the same number in their namespaces.
        self._reports = self._folder / "tmp" / f"sanitizers-{secrets.token_hex(8)}"

    def environment(self) -> dict[str, str]:
        """The variables of the process: its compiler, and where the sanitizers write."""
        script = sandbox.program(self._folder) / "g++"
        compiler = shlex.join([build.host_compiler()])
        # The compiler itself has no need of the sanitizer, and would be slow with it.
        script.write_text(f'#!/bin/sh\nunset LD_PRELOAD\nexec {compiler} "$@" {shlex.join(build.SANITIZERS)}\n')
        script.chmod(0o755)
        return {
            "CXX": str(script),
            "ASAN_OPTIONS": f"{_ADDRESS}:log_path={self._reports}",
            "UBSAN_OPTIONS": _UNDEFINED,
        }

    def command(self, arguments: list[str]) -> list[str]:
        """The command line with the sanitizer loaded first. Programs that start it, as bubblewrap, do not load it."""
        return ["env", f"LD_PRELOAD={' '.join(self._preloaded)}", *arguments]

    def finding(self, said: str) -> str:
        """What they found in the process, which printed `said` and ended, in one line; empty if nothing."""
        written = sorted(self._reports.parent.glob(f"{self._reports.name}.*"), key=lambda file: file.stat().st_mtime)
        texts = [file.read_text(errors="replace") for file in written]
        for file in written:
            file.unlink()
        return next(filter(None, map(in_words, [*texts, said])), "")

    def libraries(self) -> tuple[list[str], list[str]]:
        """Names of the libraries in the scratch folder: built with the sanitizers, and without them."""
        found: tuple[list[str], list[str]] = [], []
        for file in sorted(self._folder.rglob("*.so")):
            found[_MARK not in file.read_bytes()].append(file.name)
        return found


def in_words(report: str) -> str:
    """The first finding of a sanitizer's report in one line: kind, access, function, file and line; empty if none."""
    undefined, kind = _UNDEFINED_FINDING.search(report), _KIND.search(report)
    if kind is None:
        return f"UBSan: {undefined['what']} at {undefined['file']}:{undefined['line']}" if undefined else ""
    access, region = _ACCESS.search(report), _REGION.search(report)
    frames = [frame for frame in _FRAME.finditer(report) if not any(s in frame["file"] for s in _NOT_THE_CANDIDATE)]
    parts = [f"AddressSanitizer: {kind['kind']}", access["access"] if access else ""]
    parts += [f"in {frames[0]['function']} at {frames[0]['file']}:{frames[0]['line']}"] if frames else []
    parts += [region["place"]] if region else []
    return ", ".join(filter(None, parts))


@cache
def _preloaded(compiler: str) -> tuple[str, ...]:
    """Complete paths of the libraries to be loaded first. Raises Unavailable."""
    found = []
    for name in _PRELOADED:
        asked = [compiler, f"-print-file-name={name}"]
        path = Path(subprocess.run(asked, capture_output=True, text=True, check=False).stdout.strip())
        if not path.is_absolute():
            raise Unavailable(
                f"{compiler} has no {name}, which AddressSanitizer needs: install it, or set CXX to a g++"
            )
        found.append(str(path))
    return tuple(found)
