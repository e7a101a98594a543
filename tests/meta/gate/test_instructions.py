"""Counting instructions: the marks, callgrind's dumps, and the limit. A C program replaces the worker."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from harness.building import build
from harness.gate.instructions import marks, problems, total

PROGRAM = """
#include <stdlib.h>
void begin_counting(void);
void end_counting(void);
int main(int count, char** given) {
  volatile long sum = 0;
  for (long k = 0; k < 100000; ++k) sum += k;
  for (int run = 1; run < count; ++run) {
    begin_counting();
    for (long k = atol(given[run]); k > 0; --k) sum += k;
    end_counting();
  }
  return 0;
}
"""


@pytest.mark.skipif(shutil.which("valgrind") is None, reason="valgrind is not installed")
def test_what_stands_between_the_marks_is_counted_and_nothing_else(tmp_path: Path) -> None:
    library = marks(tmp_path)
    (tmp_path / "program.c").write_text(PROGRAM)
    source = ["-x", "c", "-O1", str(tmp_path / "program.c"), "-x", "none"]
    built = [build.host_compiler(), *source, str(library), f"-Wl,-rpath,{tmp_path}", "-o", str(tmp_path / "it")]
    subprocess.run(built, check=True)
    out = tmp_path / "callgrind.out"
    options = ["--quiet", "--tool=callgrind", "--instr-atstart=no", f"--callgrind-out-file={out}"]
    subprocess.run(["valgrind", *options, str(tmp_path / "it"), "1", "1000", "2000", "4000"], check=True, timeout=120)
    # The first part is left out: it includes symbol look-up.
    first, second, third = (total(out.with_name(f"callgrind.out.{part}")) for part in (2, 3, 4))
    per_thousand = second - first
    assert per_thousand >= 3000
    assert third - second == pytest.approx(2 * per_thousand, rel=0.01)
    assert first == pytest.approx(per_thousand, rel=0.2)


def test_one_percent_more_is_too_many() -> None:
    (problem,) = problems({"same": (1000.0, 1009.0), "more": (1000.0, 1011.0)})
    assert problem == "more: a call executes 1,011 instructions, where base executes 1,000 (+1.1%)"


def test_what_callgrind_did_not_write_is_refused(tmp_path: Path) -> None:
    (tmp_path / "dump").write_text("nothing")
    with pytest.raises(ValueError, match="has no totals"):
        total(tmp_path / "dump")
