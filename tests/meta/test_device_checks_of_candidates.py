"""compute-sanitizer for a candidate: command line, cells and report. The outputs are recorded: no GPU is needed."""

from __future__ import annotations

import subprocess
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from harness.cli import compute_sanitizer as command_line
from harness.errors import UsageError
from harness.report.cell import FAIL, NO_EVIDENCE, NOT_RUN, PASS
from harness.report.report import Report
from harness.running import sandbox
from harness.running.selection import Selection, slots
from harness.sanitizing import compute_sanitizer, launching
from harness.sanitizing.compute_sanitizer import TOOLS, WatchedCalls, chosen
from harness.sanitizing.findings import cell_of
from tests.meta.test_device_checks import CLEAN, CLEAN_RACES, INITCHECK, MEMCHECK, RACECHECK, SYNCCHECK

SAID = dict(zip(TOOLS, (MEMCHECK, RACECHECK, INITCHECK, SYNCCHECK), strict=True))
CANDIDATE = """
import torch

def mine(input, hidden_weights, hidden_bias, output_weights, output_bias):
    hidden = torch.relu(torch.nn.functional.linear(input, hidden_weights, hidden_bias))
    return torch.nn.functional.linear(hidden, output_weights, output_bias)
"""


@pytest.fixture
def selection(tmp_path: Path) -> Selection:
    file = tmp_path / "kernels.py"
    file.write_text(CANDIDATE)
    return Selection(candidates=(f"mlp={file}:mine",), dtypes=("float32",), devices=("cuda",))


@pytest.fixture
def watch(selection: Selection) -> WatchedCalls:
    return WatchedCalls(slots(selection)[0], selection, "/cuda/bin/compute-sanitizer", "off")


def test_candidates_are_chosen_and_backends_without_cuda_are_not(selection: Selection) -> None:
    assert [slot.id for slot in chosen(selection)] == ["mlp-mine-cuda-float32"]
    both = replace(selection, operators=("mlp",), backends=("cuda-accessor", "aten-cpp"))
    assert [slot.backend for slot in chosen(both)] == ["mine", "cuda-accessor"]
    with pytest.raises(UsageError, match="no candidate and no backend with CUDA sources"):
        chosen(Selection(operators=("mlp",), backends=("aten-cpp",)))


@pytest.mark.parametrize("tool", TOOLS)
def test_the_command_line_of_a_candidate(watch: WatchedCalls, tool: str) -> None:
    command = watch.command(tool)
    assert command[:3] == ["/cuda/bin/compute-sanitizer", "--tool", tool]
    assert "--kernel-name" not in command, "the names of its kernels are not known"
    assert ("--report-api-errors" in command) is (tool == "memcheck")
    at = command.index(launching.__name__)
    assert launching.chosen(command[at + 1 :]) == watch.slot
    assert watch.command("") == command[at - 3 :], "the same calls without a tool"


def test_the_program_finds_a_backend_by_its_options() -> None:
    selection = Selection(operators=("mlp",), backends=("cuda-accessor",), devices=("cuda",), dtypes=("float16",))
    (slot,) = slots(selection)
    assert launching.chosen(launching.options(slot, selection)) == slot
    command = WatchedCalls(slot, selection, "compute-sanitizer").command("memcheck")
    assert command[command.index("--kernel-name") + 1] == "kernel_substring=cuda_accessor"


def test_the_tool_and_the_candidate_are_in_the_sandbox(watch: WatchedCalls, monkeypatch: pytest.MonkeyPatch) -> None:
    if sandbox.why_none():
        pytest.skip(sandbox.why_none())
    monkeypatch.setenv("NVCC_APPEND_FLAGS", "-O2")
    command = replace(watch, choice="auto").command("memcheck")
    assert (command[0], command.index(watch.sanitizer) < command.index(launching.__name__)) == ("bwrap", True)
    variables = watch.environment()
    assert variables["NVCC_APPEND_FLAGS"] == "-O2 -lineinfo"
    assert variables["PYTORCH_NO_CUDA_MEMORY_CACHING"] == "1"
    assert Path(variables["TORCH_EXTENSIONS_DIR"]).is_relative_to(watch._scratch())


@pytest.mark.parametrize("tool", TOOLS)
def test_a_finding_in_its_kernel_is_a_failed_cell(watch: WatchedCalls, tool: str) -> None:
    cell = cell_of(watch.slot, tool, SAID[tool], 0)
    assert (cell.verdict, cell.property, cell.backend) == (FAIL, tool, "mine")
    assert ".cu:" in cell.reason


@pytest.mark.parametrize(
    "kernel",
    [
        "void at::native::vectorized_elementwise_kernel<4, at::native::FillFunctor<float>>(int)",
        "void cutlass::Kernel2<cutlass_80_simt_sgemm_128x64_8x5_tn_align1>(T1::Params)",
        "sm80_xmma_gemm_f32f32_f32f32_f32_tn_n_tilesize32x32x8",
        "ampere_sgemm_32x32_sliced1x4_tn",
        "nvjet_hsh_64x8_64x16_4x1_v_bz_TNT",
        "void cublasLt::splitKreduce_kernel<32, 16>(float)",
    ],
)
def test_a_finding_in_a_library_is_kept_apart(watch: WatchedCalls, kernel: str) -> None:
    said = INITCHECK.replace("vectorAdd(int *)+0x70 in /src/memset_error.cu:41", f"{kernel}+0x70")
    cell = cell_of(watch.slot, "initcheck", said, 0)
    assert cell.verdict == PASS, cell.reason
    assert [finding["kernel"] for finding in cell.figures["elsewhere"]] == [kernel]


def test_a_kernel_without_lines_is_its_own_unless_a_library_has_that_name(watch: WatchedCalls) -> None:
    said = INITCHECK.replace(" in /src/memset_error.cu:41", "")
    assert cell_of(watch.slot, "initcheck", said, 0).verdict == FAIL
    own = INITCHECK.replace("vectorAdd", "at::native::elementwise_kernel")
    assert cell_of(watch.slot, "initcheck", own, 0).verdict == FAIL, "a template of PyTorch that it compiled has lines"


@pytest.fixture
def gpu(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A machine that seems to have a GPU, and a compute-sanitizer that prints what is in the folder under its name."""
    program = tmp_path / "bin" / "compute-sanitizer"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\ncat "{tmp_path}/$2.txt"\n')
    program.chmod(0o755)
    for tool in TOOLS:
        (tmp_path / f"{tool}.txt").write_text(CLEAN_RACES if tool == "racecheck" else CLEAN)
    monkeypatch.setattr(compute_sanitizer, "program", lambda: str(program))
    present = SimpleNamespace(cuda=SimpleNamespace(is_available=lambda: True))
    monkeypatch.setattr(compute_sanitizer, "torch", present)
    return tmp_path


@pytest.mark.parametrize("fault", ["", "racecheck"])
def test_the_command_writes_a_cell_for_each_tool(
    gpu: Path, selection: Selection, monkeypatch: pytest.MonkeyPatch, fault: str
) -> None:
    monkeypatch.setattr(WatchedCalls, "build", lambda _watch: "")
    if fault:
        (gpu / f"{fault}.txt").write_text(SAID[fault])
    output = gpu / "report.json"
    code = command_line.main([f"--candidate={selection.candidates[0]}", "--dtype=float32", f"--output={output}"])
    report = Report.read(output)
    assert (code, report.complete) == (int(bool(fault)), True)
    verdicts = {cell.property: cell.verdict for cell in report.cells}
    assert verdicts == {tool: FAIL if tool == fault else PASS for tool in TOOLS}
    assert report.environment["candidates"]["mine/mlp"]["source"] == selection.candidates[0]
    assert report.environment["sandbox"] == sandbox.described()


@pytest.mark.usefixtures("gpu")
def test_calls_that_fail_without_a_tool_are_no_evidence(selection: Selection) -> None:
    """The real program: it stops, because this machine has no GPU or because its candidate raises."""
    file = Path(selection.candidates[0].partition("=")[2].rpartition(":")[0])
    file.write_text(CANDIDATE.replace("import torch\n", "import nowhere\n"))
    report = compute_sanitizer.run(selection, TOOLS)
    assert {cell.verdict for cell in report.cells} == {NO_EVIDENCE}
    assert len(report.cells) == len(TOOLS)
    assert all("the calls fail without any tool too (exit 1)" in cell.reason for cell in report.cells)


@pytest.mark.parametrize(
    ("copy", "verdict", "words"),
    [
        (CLEAN, FAIL, "initcheck found «Uninitialized __global__ memory read"),
        (INITCHECK, NOT_RUN, "initcheck does not see what a product writes in float32 on this GPU: it reports a copy"),
    ],
)
def test_initcheck_is_asked_about_copies_of_products(
    watch: WatchedCalls, monkeypatch: pytest.MonkeyPatch, copy: str, verdict: str, words: str
) -> None:
    """Seen on an H200: every element of a product in float16, which cuBLAS had written."""
    asked = []

    def done(command: list[str], **_: object) -> subprocess.CompletedProcess[str]:
        asked.append(command)
        text = copy if "harness.sanitizing.products" in command else INITCHECK
        return subprocess.CompletedProcess([], 0, stdout=text, stderr="")

    monkeypatch.setattr(compute_sanitizer.subprocess, "run", done)
    cell = watch.cell("initcheck")
    assert (cell.verdict, len(asked), asked[1][-1]) == (verdict, 2, "float32")
    assert words in cell.reason
    assert cell.figures["findings"]
    assert watch.cell("memcheck").verdict == FAIL, "others are not"
    assert len(asked) == 3


def test_a_backend_has_no_such_excuse(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its products are made by PyTorch, so in float32, which initcheck sees."""
    (slot,) = slots(Selection(operators=("mlp",), backends=("cuda-accessor",), devices=("cuda",), dtypes=("float16",)))
    said = INITCHECK.replace("vectorAdd", "cuda_accessor::gates")
    monkeypatch.setattr(
        compute_sanitizer.subprocess,
        "run",
        lambda command, **_: subprocess.CompletedProcess(command, 0, stdout=said, stderr=""),
    )
    assert WatchedCalls(slot, Selection(), "compute-sanitizer").cell("initcheck").verdict == FAIL


@pytest.mark.parametrize(("copy", "verdict"), [(CLEAN, NO_EVIDENCE), (INITCHECK, NOT_RUN)])
def test_products_are_copied_where_initcheck_does_not_end(
    watch: WatchedCalls, monkeypatch: pytest.MonkeyPatch, copy: str, verdict: str
) -> None:
    """Seen on an H200: LLTM in bfloat16, where every element of a product is a finding."""

    def done(command: list[str], **_: object) -> subprocess.CompletedProcess[str]:
        if "harness.sanitizing.products" not in command:
            raise subprocess.TimeoutExpired(command, 1)
        return subprocess.CompletedProcess([], 0, stdout=copy, stderr="")

    monkeypatch.setattr(compute_sanitizer.subprocess, "run", done)
    cell = watch.cell("initcheck")
    assert cell.verdict == verdict
    assert "initcheck was still running after 540 s" in cell.reason
    assert watch.cell("memcheck").verdict == NO_EVIDENCE, "other tools do not need products"


def test_copies_of_products_that_do_not_end_excuse_nothing(
    watch: WatchedCalls, monkeypatch: pytest.MonkeyPatch
) -> None:
    def done(command: list[str], **_: object) -> subprocess.CompletedProcess[str]:
        if "harness.sanitizing.products" in command:
            raise subprocess.TimeoutExpired(command, 1)
        return subprocess.CompletedProcess([], 0, stdout=INITCHECK, stderr="")

    monkeypatch.setattr(compute_sanitizer.subprocess, "run", done)
    assert watch.cell("initcheck").verdict == FAIL
