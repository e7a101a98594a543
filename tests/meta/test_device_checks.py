"""The output of compute-sanitizer becomes cells. The texts are from its manual; on a GPU there are planted faults."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
import torch

from harness.errors import Unavailable
from harness.report.cell import FAIL, NO_EVIDENCE, PASS
from harness.running.selection import Selection, Slot, slots
from harness.sanitizing import compute_sanitizer, products
from harness.sanitizing.compute_sanitizer import TOOLS, WatchedCalls, program
from harness.sanitizing.findings import Finding, cell_of, parse

MEMCHECK = """========= COMPUTE-SANITIZER
Mallocing memory
========= Invalid __global__ write of size 4 bytes
=========     at out_of_bounds_function()+0xb0 in memcheck_demo.cu:39
=========     by thread (0,0,0) in block (0,0,0)
=========     Address 0x87654320 is out of bounds
=========     and is 137,179,965,340,896 bytes before the nearest allocation at 0x7cc43a800000 of size 1,024 bytes
=========         Device Frame: out_of_bounds_kernel()+0x30 in memcheck_demo.cu:44
=========     Saved host backtrace up to driver entry point at kernel launch time
=========         Host Frame: run_out_of_bounds() [0xadb6] in memcheck_demo
=========
Running unaligned_kernel: no error
========= Invalid __global__ write of size 4 bytes
=========     at unaligned_kernel():0x160 in memcheck_demo.cu:6
=========     by thread (1,0,0) in block (2,0,0)
=========     Address 0x7f6510c00001 is misaligned
=========
========= ERROR SUMMARY: 2 errors
"""
RACECHECK = """========= COMPUTE-SANITIZER
========= Error: Race reported between Write access at sumKernel(int *, int *)+0x90 in /src/block_error.cu:41
=========     and Read access at sumKernel(int *, int *)+0x100 in /src/block_error.cu:51 [508 hazards]
=========
========= RACECHECK SUMMARY: 1 hazard displayed (1 error, 0 warnings)
"""
INITCHECK = """========= COMPUTE-SANITIZER
========= Uninitialized __global__ memory read of size 4 bytes
=========     at vectorAdd(int *)+0x70 in /src/memset_error.cu:41
=========     by thread (31,0,0) in block (1,0,0)
=========     Address 0x7f3c7ec000fc
========= ERROR SUMMARY: 1 error
"""
SYNCCHECK = """========= COMPUTE-SANITIZER
========= Barrier error detected. Divergent thread(s) in warp
=========     at ThreadDivergence(int *, int)+0xf0 in divergence.cu:79
=========     by thread (37,0,0) in block (0,0,0)
========= ERROR SUMMARY: 16 errors
========= ERROR SUMMARY: 15 errors were not printed. Use --print-limit option to adjust the number of printed errors
"""
CLEAN = "========= COMPUTE-SANITIZER\n40 calls\n========= ERROR SUMMARY: 0 errors\n"
DIED = "========= Target application returned an error\n========= ERROR SUMMARY: 0 errors\nterminate called\n"
CLEAN_RACES = "========= COMPUTE-SANITIZER\n========= RACECHECK SUMMARY: 0 hazards displayed (0 errors, 0 warnings)\n"

WRITE = "Invalid __global__ write of size 4 bytes"


@pytest.fixture(scope="module")
def place() -> Slot:
    (found,) = slots(
        Selection(operators=("mlp",), backends=("cuda-raw-pointer",), devices=("cuda",), dtypes=("float32",))
    )
    return found


@pytest.mark.parametrize(
    ("said", "first", "errors"),
    [
        (
            MEMCHECK,
            Finding(
                WRITE,
                "out_of_bounds_function()",
                "memcheck_demo.cu",
                39,
                "0x87654320",
                "thread (0,0,0) in block (0,0,0)",
                ("out_of_bounds_kernel()",),
            ),
            2,
        ),
        (
            RACECHECK,
            Finding("Error: Race reported between Write access", "sumKernel(int *, int *)", "/src/block_error.cu", 41),
            1,
        ),
        (
            INITCHECK,
            Finding(
                "Uninitialized __global__ memory read of size 4 bytes",
                "vectorAdd(int *)",
                "/src/memset_error.cu",
                41,
                "0x7f3c7ec000fc",
                "thread (31,0,0) in block (1,0,0)",
            ),
            1,
        ),
        (
            SYNCCHECK,
            Finding(
                "Barrier error detected. Divergent thread(s) in warp",
                "ThreadDivergence(int *, int)",
                "divergence.cu",
                79,
                thread="thread (37,0,0) in block (0,0,0)",
            ),
            16,
        ),
    ],
    ids=TOOLS,
)
def test_a_finding_has_kernel_line_and_address(said: str, first: Finding, errors: int) -> None:
    found, counted = parse(said)
    assert found[0] == first
    assert counted == errors


def test_every_finding_is_read() -> None:
    found, _ = parse(MEMCHECK)
    assert [(finding.kernel, finding.line) for finding in found] == [
        ("out_of_bounds_function()", 39),
        ("unaligned_kernel()", 6),
    ]
    no_lines = MEMCHECK.replace(" in memcheck_demo.cu:39", "")
    assert parse(no_lines)[0][0].kernel == "out_of_bounds_function()"


@pytest.mark.parametrize("said", [CLEAN, CLEAN_RACES])
def test_silence_is_a_pass_only_with_a_summary(place: Slot, said: str) -> None:
    assert parse(said) == ([], 0)
    assert cell_of(place, "memcheck", said, 0).verdict == PASS
    for broken, code in ((said, 1), ("", 0), (said.splitlines()[0], 0)):
        cell = cell_of(place, "memcheck", broken, code)
        assert cell.verdict == NO_EVIDENCE
        assert "printed no summary, or the calls failed" in cell.reason


def test_a_finding_fails_in_words_that_help(place: Slot) -> None:
    cell = cell_of(place, "memcheck", MEMCHECK, 0)
    assert cell.verdict == FAIL
    assert cell.key == ("mlp", "cuda-raw-pointer", "cuda", "float32", "memcheck")
    for words in (WRITE, "in out_of_bounds_function()", "at memcheck_demo.cu:39", "address 0x87654320", "and 1 more"):
        assert words in cell.reason
    assert cell.figures["errors"] == 2
    counted = CLEAN.replace("0 errors", "3 errors")
    assert cell_of(place, "memcheck", counted, 0).verdict == FAIL, "errors that were counted but not printed"


def test_what_other_kernels_do_is_told_apart(place: Slot) -> None:
    """initcheck must watch every kernel to see its writes; only the backend's kernels are judged."""
    cell = cell_of(place, "initcheck", INITCHECK, 0, namespace="cuda_raw_pointer")
    assert cell.verdict == PASS
    assert [finding["kernel"] for finding in cell.figures["elsewhere"]] == ["vectorAdd(int *)"]
    ours = INITCHECK.replace("vectorAdd", "cuda_raw_pointer::vectorAdd")
    assert cell_of(place, "initcheck", ours, 0, namespace="cuda_raw_pointer").verdict == FAIL
    counted = cell_of(place, "initcheck", CLEAN.replace("0 errors", "3 errors"), 0, namespace="cuda_raw_pointer")
    assert counted.verdict == FAIL, "errors that were counted but not printed"


def test_a_function_that_is_inlined_in_a_kernel_counts_as_it(place: Slot) -> None:
    """Seen on an H200: the place of a read by `cuda-accessor` was c10::Half::operator float()."""
    line = "=========     Address 0x7f3c7ec000fc\n"
    inlined = INITCHECK.replace("vectorAdd(int *)", "c10::Half::operator float() const")
    for frame, verdict in (("cuda_raw_pointer::lltm_forward", FAIL), ("at::native::copy", PASS)):
        within = f"{line}=========         Device Frame: {frame}(int *)+0x30 in /src/lltm.cu:44\n"
        cell = cell_of(place, "initcheck", inlined.replace(line, within), 0, namespace="cuda_raw_pointer")
        assert cell.verdict == verdict


@pytest.mark.parametrize(("runs", "verdict"), [([DIED, CLEAN], PASS), ([DIED, DIED], NO_EVIDENCE)])
def test_what_says_nothing_is_asked_once_more(
    place: Slot, monkeypatch: pytest.MonkeyPatch, runs: list[str], verdict: str
) -> None:
    said = iter(runs)

    def done(*_: object, **__: object) -> subprocess.CompletedProcess[str]:
        text = next(said)
        return subprocess.CompletedProcess([], 6 if text == DIED else 0, stdout=text, stderr="")

    monkeypatch.setattr(compute_sanitizer.subprocess, "run", done)
    assert WatchedCalls(place, Selection(), "compute-sanitizer").cell("synccheck").verdict == verdict
    assert not list(said)


def test_what_initcheck_does_not_print_counts(place: Slot) -> None:
    """It prints 10000 findings: a kernel of the backend may be among those that follow."""
    more = INITCHECK + "========= ERROR SUMMARY: 7 errors were not printed. Use --print-limit option to adjust\n"
    assert cell_of(place, "initcheck", INITCHECK, 0, namespace="cuda_raw_pointer").verdict == PASS
    cell = cell_of(place, "initcheck", more, 0, namespace="cuda_raw_pointer")
    assert cell.verdict == FAIL
    assert "errors that it counted but did not print" in cell.reason


def test_the_products_that_are_copied_can_be_made() -> None:
    for dtype in (torch.float32, torch.float16, torch.bfloat16, torch.float64):
        products.copy_products(dtype, "cpu")


@pytest.mark.parametrize("tool", TOOLS)
def test_each_tool_finds_its_planted_fault(tool: str, tmp_path: Path, place: Slot) -> None:
    """Otherwise a clean run of the tools would prove nothing."""
    try:
        sanitizer = program()
    except Unavailable as error:
        pytest.skip(str(error))
    if not torch.cuda.is_available():
        pytest.skip("no CUDA device on this machine")
    nvcc = shutil.which("nvcc")
    if nvcc is None:
        pytest.skip("nvcc is not on PATH")
    source = Path(__file__).parent / "planted" / "kernels.cu"
    subprocess.run([nvcc, "-lineinfo", "-o", str(tmp_path / "planted"), str(source)], check=True, timeout=200)
    for fault in (tool, "none"):
        command = [sanitizer, "--tool", tool, "--strip-paths", "no", str(tmp_path / "planted"), fault]
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=200)
        cell = cell_of(place, tool, done.stdout + done.stderr, 0)
        assert cell.verdict == (FAIL if fault == tool else PASS), done.stdout + done.stderr
        if fault == tool:
            assert "kernels.cu:" in cell.reason


def test_a_failure_of_the_tool_is_no_finding(place: Slot) -> None:
    """Seen on an H200 with kernels in half types."""
    said = "========= COMPUTE-SANITIZER\n========= Internal Sanitizer Error: The Sanitizer failed to handle it.\n"
    for tail in (
        "========= ERROR SUMMARY: 1 error\n",
        "========= RACECHECK SUMMARY: 0 hazards displayed (0 errors, 0 warnings)\n",
    ):
        cell = cell_of(place, "racecheck", said + tail, 1)
        assert (cell.verdict, cell.reason.partition(":")[0]) == (NO_EVIDENCE, "racecheck itself failed")
