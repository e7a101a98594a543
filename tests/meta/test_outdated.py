"""The list of answers of older code is that of git's history, and what is older code."""

from __future__ import annotations

import subprocess

import pytest

from harness.errors import UsageError
from tests.meta.conftest import ROOT
from tools.outdated.__main__ import DOCUMENT, drawn, table
from tools.outdated.answers import CELLS, TIMINGS, Answer, Older, answers, older
from tools.outdated.code import Same, changed, files, files_at, ledger, normal
from tools.unanswered import Key

KEY: Key = ("lltm", "mine", "sizes", "float32")


def _has_history() -> bool:
    command = ["git", "-C", str(ROOT), "rev-parse", "--is-shallow-repository"]
    return subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip() == "false"


with_history = pytest.mark.skipif(not _has_history(), reason="needs git's whole history: `git fetch --unshallow`")


@with_history
def test_the_page_has_the_list_of_today() -> None:
    document = (ROOT / DOCUMENT).read_text(encoding="utf-8")
    assert document == drawn(document), "run `python -m tools.outdated`"


@with_history
@pytest.mark.parametrize("entry", ledger(), ids=lambda entry: entry.file)
def test_each_entry_of_the_ledger_explains_a_record(entry: Same) -> None:
    commits = {answer.commit for answer in answers()}
    of_records = [normal(entry.file, files_at(commit).get(entry.was, "")) for commit in commits]
    assert entry.code_before() in of_records, f"no record is of {entry.was} at {entry.before}"
    assert entry.code_after() == normal(entry.file, (ROOT / entry.file).read_text()), f"it changed after {entry.after}"
    assert entry.code_before() != entry.code_after() or entry.was != entry.file, "the entry explains nothing"
    assert len(entry.reason.split()) > 4


@with_history
def test_a_change_of_one_operator_concerns_its_implementations_alone() -> None:
    assert changed("aten-cpp", "lltm", "7fdb72c~1") == ("backends/aten_cpp/csrc/lltm.cpp",)
    assert changed("cuda-accessor", "lltm", "7fdb72c~1") == (
        "backends/_cuda/lltm_operator.h",
        "backends/cuda_accessor/csrc/lltm.cpp",
    )
    assert changed("aten-cpp", "mlp", "7fdb72c~1") == ()


@with_history
def test_a_commit_that_git_does_not_have_is_named() -> None:
    with pytest.raises(UsageError, match=r"'0123456', but should be one that git has: `git fetch --unshallow`"):
        changed("aten-cpp", "lltm", "0123456")


def test_the_files_are_those_that_compute() -> None:
    compiled = set(files("cuda-raw-pointer", "lltm"))
    assert {
        "backends/cuda_raw_pointer/lltm.py",
        "backends/cuda_raw_pointer/csrc/lltm.cu",
        "backends/_cuda/launch.h",
        "backends/_cuda/lltm_operator.h",
        "backends/_native/lltm_autograd.h",
        "backends/_native/arguments.h",
    } <= compiled
    assert not [name for name in compiled if "layer_norm" in name or "cuda_fused" in name or "__init__" in name]
    assert "backends/base.py" not in compiled
    assert "backends/_python/attention.py" in files("python-autograd", "attention")
    assert files("cpu-fused", "softmax") == ()


@pytest.mark.parametrize(
    ("name", "before", "after", "same"),
    [
        ("a.h", "int f(int a) {return a;} // one\n", "/* two */ int f( int a )\n{ return a; }", True),
        ("a.h", 'auto text = "// no comment";', 'auto text = "// another";', False),
        ("a.h", "auto quote = '\"'; // one", "auto quote = '\"'; // two", True),
        ("a.h", "return a + b;", "return a - b;", False),
        ("a.h", "intf;", "int f;", False),
        ("a.h", "#define SIZE 4  // one\n+ 1;", "#define SIZE   4\n+ 1;", True),
        ("a.h", "#define SIZE 4\n+ 1;", "#define SIZE 4 + 1\n;", False),
        ("a.h", "#define SUM(a) \\\n  a + a\nint b;", "#define SUM(a) a + a\nint b;", True),
        ("a.py", 'def f(x):\n    """One."""\n    return x  # one', "def f(x):\n    return (x)", True),
        ("a.py", 'def f(x):\n    """One."""\n    return x', "def f(x):\n    return x + 0", False),
        ("a.py", 'text = "one"', 'text = "two"', False),
    ],
)
def test_comments_docstrings_and_white_space_are_no_code(name: str, before: str, after: str, same: bool) -> None:
    assert (normal(name, before) == normal(name, after)) is same


def _answer(commit: str, what: str = CELLS, key: Key = KEY) -> Answer:
    return Answer(what, key, f"{commit}.json", commit)


def _changed(backend: str, operator: str, commit: str) -> tuple[str, ...]:
    return ("backends/mine/lltm.py",) if commit.startswith("old") else ()


@pytest.mark.parametrize(
    ("commits", "last"),
    [(["old-1"], "old-1"), (["old-1", "old-2"], "old-2"), (["old-1", "new"], None), (["new", "old-1"], None)],
)
def test_an_answer_is_older_where_no_record_has_the_code_of_today(commits: list[str], last: str | None) -> None:
    found = older([_answer(commit) for commit in commits], _changed)
    assert [each.commit for each in found] == ([] if last is None else [last])


def test_answers_are_counted_by_record_and_kind() -> None:
    found = older(
        [
            _answer("old-1"),
            _answer("old-1", key=(*KEY[:3], "bfloat16")),
            _answer("old-1", TIMINGS, (*KEY[:2], "tutorial forward graph", "float32")),
            _answer("new", TIMINGS, KEY),
        ],
        _changed,
    )
    file = ("backends/mine/lltm.py",)
    assert found == {
        Older("mine", "lltm", CELLS, "old-1.json", "old-1", file): 2,
        Older("mine", "lltm", TIMINGS, "old-1.json", "old-1", file): 1,
    }
    assert table(found).splitlines() == [
        "3 answers:",
        "",
        "| backend | operator | answers | the last record | what differs |",
        "|---|---|---|---|---|",
        "| mine | lltm | cells: 2 | `old-1.json` (old-1) | `lltm.py` |",
        "| mine | lltm | timings: 1 | `old-1.json` (old-1) | `lltm.py` |",
    ]
    assert table({}) == "No answer is of older code."
