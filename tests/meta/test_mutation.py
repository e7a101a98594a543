"""The mutation runner: its operators rewrite correctly, and it distinguishes killed, survived and stillborn."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.meta.conftest import Run
from tests.meta.tiers import TOOL
from tools.mutation import account, runner
from tools.mutation.account import Account, Case, Entry, hold_against_ledger, read_ledger
from tools.mutation.judging import EXPLAINED, KILLED, STILLBORN, SURVIVED, Outcome
from tools.mutation.operators import mutants, sample
from tools.mutation.sources import BACKENDS, SOURCES


def _rewrites(file: str, text: str) -> set[tuple[str, str]]:
    return {(mutant.edit.operator, mutant.after) for mutant in mutants(file, text)}


def _in_function(*lines: str) -> str:
    return "def f(a, b, c):\n" + "".join(f"    {line}\n" for line in lines)


PYTHON = [
    ("return a + b", "swap-operator", "return a - b"),
    ("return a + b", "drop-term", "return a"),
    ("return a + b", "drop-term", "return b"),
    ("return a * b", "swap-operator", "return a / b"),
    ("return a @ b", "drop-factor", "return b"),
    ("return a < b", "swap-operator", "return a <= b"),
    ("return a < b", "swap-operator", "return a >= b"),
    ("return -a", "drop-sign", "return a"),
    ("return a if b else c", "negate-condition", "return a if not (b) else c"),
    ("return a if b else c", "drop-guard", "return a if True else c"),
    ("check(a, b)", "drop-statement", "pass"),
    ("return g(a, b)", "swap-arguments", "return g(b, a)"),
    ("return a[:b]", "swap-arguments", "return a[b:]"),
    ("return a[3]", "change-number", "return a[2]"),
    ("return a * 2.0", "change-number", "return a * 2.02"),
    ("return torch.tanh(a)", "replace-name", "return torch.sigmoid(a)"),
    ("return a.contiguous()", "drop-call", "return a"),
]


@pytest.mark.parametrize(("line", "operator", "after"), PYTHON)
def test_python_is_rewritten(line: str, operator: str, after: str) -> None:
    assert (operator, after) in _rewrites("x.py", _in_function(line))


CPP = [
    ("y = a + b * c;", "drop-term", "y = a;"),
    ("y = a + b * c;", "drop-term", "y = b * c;"),
    ("y = a + b * c;", "drop-factor", "y = a + b;"),
    ("y = a + b * c;", "swap-operator", "y = a + b / c;"),
    ("y = g(a, b) * (c - d);", "drop-factor", "y = (c - d);"),
    ("y = a < b;", "swap-operator", "y = a <= b;"),
    ("y = a && b;", "swap-operator", "y = a || b;"),
    ("y = a && b;", "drop-operand", "y = b;"),
    ("for (int k = 0; k < n; ++k) y += k;", "off-by-one", "for (int k = 0; k < n - 1; ++k) y += k;"),
    ("y[row] = 1;", "off-by-one", "y[row + 1] = 1;"),
    ("y = a + 3;", "change-number", "y = a + 4;"),
    ("y = real(1) / z;", "change-number", "y = real(1.01) / z;"),
    ("y = std::exp(-z);", "drop-sign", "y = std::exp(z);"),
    ("y = std::exp(-z);", "replace-name", "y = std::expm1(-z);"),
    ("if (n > 0) g(a);", "negate-condition", "if (!(n > 0)) g(a);"),
    ("if (n > 0) g(a);", "drop-guard", "if (true) g(a);"),
    ("g(a, b);", "drop-statement", ";"),
    ("const c10::DeviceGuard on_device(a.device());", "drop-statement", ";"),
    ("g(a.size(0), b.size(1));", "swap-arguments", "g(b.size(1), a.size(0));"),
    ("const Tensor d = a.contiguous();", "drop-call", "const Tensor d = a;"),
    ("const int64_t n = a;", "narrow-type", "const int32_t n = a;"),
]


@pytest.mark.parametrize(("line", "operator", "after"), CPP)
def test_cpp_is_rewritten(line: str, operator: str, after: str) -> None:
    assert (operator, after) in _rewrites("x.cu", f"void f(int n) {{\n  {line}\n}}\n")


LEFT_ALONE = """
#include <array>  // 1 + 1
/// a * b
using Wanted = std::array<bool, 5>;
template <typename real, int width = 4>
real f(const Tensor& one, const Tensor& other, int64_t (*name)(int)) {
  const auto y = static_cast<const real*>(g<width>("1 + 1"));
  real a, b;
  return y;
}
#ifdef CUDA_EMULATED
#else
void g() { h(1 + 2); }
#endif
TORCH_LIBRARY_FRAGMENT(OPERATOR_NAMESPACE, m) {
  m.impl("lltm", &lltm);
}
"""


def test_what_is_no_code_is_left_alone() -> None:
    assert {operator for operator, _ in _rewrites("x.cpp", LEFT_ALONE)} <= {"narrow-type"}
    assert not _rewrites("x.py", 'import a\n\n\ndef f(x: int = 1) -> "int":\n    """1 + 1."""\n    return x\n')


def test_the_list_is_the_same_each_time_and_names_are_unique() -> None:
    for source in SOURCES:
        text = (BACKENDS / source.file).read_text()
        found = mutants(source.file, text)
        assert found == mutants(source.file, text)
        assert len({mutant.id for mutant in found}) == len(found)
        assert len(sample(found, 9, seed=1)) == min(9, len(found))
        assert sample(found, 9, seed=1) == sample(found, 9, seed=1)
        assert len(found) <= 9 or sample(found, 9, seed=1) != sample(found, 9, seed=2)


def test_every_entry_of_the_ledger_is_about_a_mutant_and_gives_a_reason() -> None:
    everything = {m.key for source in SOURCES for m in source.drawn(everything=True)[0]}
    assert not [entry for entry in read_ledger() if entry.key not in everything]


def test_a_ledger_without_reasons_is_refused(tmp_path: Path) -> None:
    ledger = tmp_path / "ledger.toml"
    ledger.write_text('[[equivalent]]\nfile = "a.cu"\nbefore = "x"\nafter = "y"\nreason = "is"\n')
    with pytest.raises(ValueError, match="should give a reason"):
        read_ledger(ledger)


def test_a_ledger_with_an_entry_in_the_wrong_section_is_refused(tmp_path: Path) -> None:
    row = 'file = "a.cu"\nbefore = "x"\nafter = "y"\nreason = "more than four words here"\n'
    for section, seen_by in (("gpu-only", ""), ("equivalent", "sizes"), ("gpu-only", "nothing")):
        ledger = tmp_path / "ledger.toml"
        ledger.write_text(f'[[{section}]]\n{row}seen_by = "{seen_by}"\n')
        with pytest.raises(ValueError, match="should name a property"):
            read_ledger(ledger)
    for section, seen_by, host in (("gpu-only", "sizes", "nobody"), ("equivalent", "", "cuda-fused")):
        ledger.write_text(f'[[{section}]]\n{row}seen_by = "{seen_by}"\nhost = "{host}"\n')
        with pytest.raises(ValueError, match="should name a backend"):
            read_ledger(ledger)


def _account(status: str, entries: list[Entry]) -> Account:
    source = SOURCES[0]
    mutant = source.drawn(everything=False)[0][0]
    case = Case(source, mutant, list(source.hosts), Outcome(mutant.id, status, by="layouts"))
    result = Account([case], {source.file: 1})
    hold_against_ledger(result, entries)
    return result


def test_survivors_count_unless_the_ledger_explains_them() -> None:
    mutant = SOURCES[0].drawn(everything=False)[0][0]
    entry = Entry(*mutant.key, "nothing that a caller can see")
    assert _account(SURVIVED, []).score() == 0.0
    assert _account(SURVIVED, [entry]).score() == 1.0
    assert _account(KILLED, []).score() == 1.0
    assert not _account(STILLBORN, []).follow_up()
    assert any("is called equivalent, but was killed" in line for line in _account(KILLED, [entry]).complaints)
    gone = Entry(mutant.file, mutant.before, "no such line", "nothing that a caller can see")
    assert any("any more" in line for line in _account(KILLED, [gone]).complaints)


def test_what_only_a_gpu_notices_is_neither_killed_nor_equivalent() -> None:
    mutant = SOURCES[0].drawn(everything=False)[0][0]
    entry = Entry(*mutant.key, "needs more elements than that", "many-elements")
    for status in (SURVIVED, EXPLAINED):
        result = _account(status, [entry])
        assert (result.score(), len(result.explained("gpu-only")), result.explained("equivalent")) == (0.0, 1, [])
        assert not result.follow_up()


def test_what_the_ledger_explains_is_not_judged() -> None:
    source = SOURCES[0]
    first, second, *_ = source.drawn(everything=False)[0]
    cases = [Case(source, mutant, list(source.hosts)) for mutant in (first, second)]
    account.explain(cases, [Entry(*first.key, "nothing that a caller can see")])
    assert [case.outcome and case.outcome.status for case in cases] == [EXPLAINED, None]


def test_the_sanitized_process_must_let_through_what_is_right() -> None:
    runner.require_right([Outcome("the unmutated cuda-accessor", SURVIVED)])
    with pytest.raises(RuntimeError, match="rejects the unmutated cuda-accessor: killed by layouts"):
        runner.require_right([Outcome("the unmutated cuda-accessor", KILLED, by="layouts", message="exit (1)")])


@pytest.mark.skipif(shutil.which("g++") is None, reason="needs a compiler to ask where its libraries are")
def test_the_sanitized_process_can_throw() -> None:
    assert [Path(path).name.split(".")[0] for path in runner.preloaded()] == ["libasan", "libstdc++"]


#: Patterns of «id new-line», each for one mutant, with its result.
KNOWN: dict[str, tuple[str, str]] = {
    # no check of arguments; tanh in the forward of plain torch; a factor (1 - i) of a gradient
    r"^python_autograd/.*:drop-statement:.* pass$": (KILLED, "error-messages"),
    r"^python_autograd/.*:replace-name:.*sigmoid\(new_cell\)": (KILLED, "forward-parity"),
    r"^python_manual_backward/.*:drop-factor:.* d_input_gate \* input_gate,$": (KILLED, "vjp-parity"),
    # a kernel that writes the gradient of the candidate's gate to the place of the output gate's
    r"^cuda_accessor/csrc/lltm.cu:.* d_gate\[column \+ 1 \* state_size\] = ": (KILLED, "vjp-parity"),
    r"^_cuda/launch.h:.*emulation::launch\(grid, kernel,": (STILLBORN, "compiler"),
}
JUDGED_BY = ("error-messages", "forward-parity", "vjp-parity")


@pytest.fixture(scope="module")
def small_run(python: Run, tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, Any]]:
    """A run of a few mutants, judged by a few properties."""
    report = tmp_path_factory.mktemp("mutation") / "mutation.json"
    options = [part for pattern in KNOWN for part in ("--only", pattern)]
    options += [part for name in JUDGED_BY for part in ("--property", name)]
    options += ["--all", "--no-zoo", "--no-sanitize", "--report", report]
    done = python("-m", "tools.mutation", *options, CUDA_VISIBLE_DEVICES="")
    assert report.exists(), done.stdout + done.stderr
    rows: list[dict[str, Any]] = json.loads(report.read_text())["mutants"]
    return rows


@pytest.mark.long(TOOL)
@pytest.mark.parametrize("pattern", list(KNOWN))
def test_what_becomes_of_a_known_mutant(pattern: str, small_run: list[dict[str, Any]]) -> None:
    (row,) = [row for row in small_run if re.search(pattern, f"{row['id']} {row['after']}")]
    assert (row["status"], row["by"]) == KNOWN[pattern], row


def test_one_line_shows_the_difference() -> None:
    mutant = next(m for m in mutants("x.py", _in_function("return a + b")) if m.after == "return a - b")
    assert account._short(mutant) == "return a + b  →  return a - b"


def test_a_failure_of_the_harness_is_a_complaint_and_no_kill_alone() -> None:
    said = "the harness itself failed: JSONDecodeError: Extra data"
    account = Account([], {}, faults=[Outcome("BiasForgotten", KILLED, "fake-devices", "float32", said)])
    assert f"BiasForgotten was killed by fake-devices in float32 because {said}" in account.complaints
    account.faults = [Outcome("BiasForgotten", KILLED, "forward-parity", "float32", "new_h was 1, but should be 2")]
    assert account.complaints == []
