"""What the pages of docs/ show is real: code stands in the file that it names, messages in the harness.

Commands of the examples are run, with some properties of all.
"""

from __future__ import annotations

import ast
import importlib.util
import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest

from harness.judge import FAIL, PASS
from harness.report import Report
from tests.meta.conftest import ROOT, Run

EXAMPLES = ROOT / "docs" / "examples"
_FENCE = re.compile(
    r"^```(?P<language>\w+)(?: title=\"(?P<title>[^\"]+)\")?\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL
)


@dataclass(frozen=True)
class Block:
    """A piece of code of a page."""

    page: str
    language: str
    title: str
    text: str


def _blocks() -> Iterator[Block]:
    for page in sorted((ROOT / "docs").glob("*.md")):
        for found in _FENCE.finditer(page.read_text()):
            yield Block(page.name, found["language"], found["title"] or "", found["text"])


BLOCKS = list(_blocks())


def test_code_stands_in_the_file_that_it_names() -> None:
    """A line `...` stands for what is left out."""
    quoted = [block for block in BLOCKS if block.title and block.title != "harness"]
    assert len(quoted) > 10
    for block in quoted:
        source = (ROOT / block.title).read_text()
        for part in block.text.split("\n...\n"):
            assert part.strip("\n") in source, f"{block.page}: this is not in {block.title} any more:\n{part}"


def _template(node: ast.AST) -> str:
    """A text with `…` for what is put into it."""
    match node:
        case ast.Constant(value=str(text)):
            return text
        case ast.JoinedStr(values=values):
            return "".join(_template(value) if isinstance(value, ast.Constant) else "…" for value in values)
        case ast.BinOp(left=left, op=ast.Add(), right=right):
            return _template(left) + _template(right)
    return "…"


@cache
def _templates() -> tuple[str, ...]:
    found = set()
    for file in (ROOT / "harness").rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.Constant | ast.JoinedStr | ast.BinOp):
                found.add(_template(node))
    return tuple(found)


def _quoted_messages() -> list[str]:
    messages = [block.text.strip() for block in BLOCKS if block.title == "harness"]
    page = (ROOT / "docs/failures.md").read_text()
    # Of a line that explains a wrong value: without the numbers of its example.
    lines = re.findall(r"^\| `([^`]+)` \|", page, flags=re.MULTILINE)
    return messages + [line.partition(":")[0] for line in lines]


def _is_written(message: str) -> bool:
    """Whether some text of the harness has the words of the message in their order."""
    parts = [part.strip() for part in message.split("…") if part.strip(" ()")]
    pattern = re.compile(".*".join(map(re.escape, parts)), re.DOTALL)
    return any(pattern.search(template) for template in _templates())


@pytest.mark.parametrize("message", _quoted_messages())
def test_a_message_that_is_explained_is_one_of_the_harness(message: str) -> None:
    assert _is_written(message), f"no text of harness/ reads {message!r} any more"


def test_a_message_that_nothing_writes_is_noticed() -> None:
    assert not _is_written("… was … at …, but ought to be …")


def _commands(*words: str) -> list[list[str]]:
    """The commands of the pages that have all these words, as lists."""
    lines = [line for block in BLOCKS if block.language == "sh" for line in block.text.splitlines()]
    return [shlex.split(line) for line in lines if all(word in line for word in words)]


def test_sessions_that_pages_name_exist() -> None:
    sessions = set(re.findall(r"^def ([a-z_]+)\(session", (ROOT / "noxfile.py").read_text(), flags=re.MULTILINE))
    sessions |= set(re.findall(r"@nox.session\(name=\"([^\"]+)\"", (ROOT / "noxfile.py").read_text()))
    for page in (ROOT / "docs").glob("*.md"):
        for name in re.findall(r"nox -s \"?([a-z-]+)", page.read_text()):
            assert name in sessions or name.replace("-", "_") in sessions, f"{page.name}: nox -s {name}"


#: File -> what of the suite the page's command is run with here: some properties of all, in one dtype.
CANDIDATES = {
    "plain_function.py": ["--device=cpu", "-k", "forward-parity or vjp-parity or layouts or rejects-wrong-calls"],
    "cpp_extension.py": ["-k", "forward-parity or vjp-parity or layouts or rejects-wrong-calls or fake-tensors"],
    "triton_kernel.py": [
        "--device=cpu",
        "-k",
        "forward-parity or vjp-parity or double-backward or rejects-wrong-calls",
    ],
}


@pytest.mark.parametrize("name", CANDIDATES)
def test_the_examples_hold(name: str, python: Run, tmp_path: Path) -> None:
    """By the command that the page gives. What they declare is held too, since a declaration without need fails."""
    if name == "triton_kernel.py" and importlib.util.find_spec("triton") is None:
        pytest.skip("Triton is not installed: `pip install triton`")
    (command,) = [words[1:] for words in _commands("python -m harness judge", f"examples/{name}")]
    if name == "triton_kernel.py":
        command = command[: command.index("--device")]  # on the CPU, by Triton's interpreter
    report = tmp_path / "report.json"
    options = ["--dtype=float64", f"--report={report}", "-q", "-p", "no:cacheprovider"]
    # A build of the extension that was interrupted leaves a lock, on which the next one in that folder waits for ever.
    folder = str(tmp_path / "extensions")
    done = python(*command, *options, *CANDIDATES[name], TRITON_INTERPRET="1", TORCH_EXTENSIONS_DIR=folder)
    assert done.returncode == 0, done.stdout + done.stderr
    cells = Report.read(report).cells
    assert len(cells) == CANDIDATES[name][-1].count(" or ") + 1
    assert {cell.verdict for cell in cells} == {PASS}


def _without_digits(text: str) -> str:
    return re.sub(r"-?\d+(\.\d+)?(e-?\d+)?", "#", text)


def test_what_the_wrong_one_is_told_is_what_the_page_shows(python: Run, tmp_path: Path) -> None:
    """But for numbers, whose last digits are a machine's. `docs/examples/wrong_function.txt` has the whole answer."""
    (command,) = [words[1:] for words in _commands("python -m harness judge", "wrong_function.py")]
    report = tmp_path / "report.json"
    done = python(*command, "--device=cpu", f"--report={report}", "-p", "no:cacheprovider")
    assert done.returncode == 1, done.stdout + done.stderr
    (cell,) = Report.read(report).cells
    assert cell.verdict == FAIL
    shown = (EXAMPLES / "wrong_function.txt").read_text()
    assert _without_digits(cell.reason) == _without_digits(shown.strip())
