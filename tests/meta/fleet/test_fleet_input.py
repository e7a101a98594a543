"""What a fleet reads: each line that cannot be read is named, and no name does harm."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from harness.errors import Unavailable, UsageError
from harness.fleet import Item, input
from harness.fleet.request import Request
from tests.meta.fleet.conftest import lines, obeys

_GOOD: dict[str, Any] = {"source": "def f(x): return x", "function": "f", "operator": "op"}


@pytest.mark.parametrize(
    ("line", "why"),
    [
        (b"{", "it is not JSON"),
        (b"\xff", "it is not UTF-8"),
        (b"[" * 100_000, "it is not JSON"),
        (b"3", "a candidate was 3, but should be an object with the fields id, function"),
        (b"{}", "either source, the text of a Python file, or path"),
        (json.dumps({**_GOOD, "sauce": "x"}).encode(), "unknown field 'sauce'; known fields: id, function, source"),
        (json.dumps({**_GOOD, "source": 3}).encode(), "source was 3, but should be a text"),
        (
            json.dumps({**_GOOD, "source": None, "path": "x.py"}).encode(),
            "path was 'x.py', but should be a Python file that exists",
        ),
        (json.dumps({**_GOOD, "function": "f; rm"}).encode(), "function was 'f; rm', but should be the name"),
        (json.dumps({**_GOOD, "id": "x" * 501}).encode(), "id has 501 characters, but should have 1 to 500"),
        (json.dumps({**_GOOD, "id": "a\0"}).encode(), "id was 'a\\x00', but should have no zero byte"),
        (json.dumps({**_GOOD, "id": "\ud800"}).encode(), "id has half a surrogate pair"),
        (json.dumps({**_GOOD, "id": "line-1"}).encode(), "the id 'line-1' is that of line 1 too"),
        (json.dumps({**_GOOD, "operator": "a=b"}).encode(), "operator was 'a=b', but should be a name"),
        (json.dumps({**_GOOD, "operator": None}).encode(), "either operator or reference"),
        (json.dumps({**_GOOD, "example": "a.py:f"}).encode(), "example was given without reference"),
        (json.dumps({**_GOOD, "reference": "a.py:f"}).encode(), "either operator or reference"),
    ],
)
def test_a_line_that_cannot_be_read_is_named(tmp_path: Path, line: bytes, why: str) -> None:
    path = tmp_path / "given.jsonl"
    path.write_bytes(json.dumps(_GOOD).encode() + b"\n\n" + line + b"\n")
    with pytest.raises(UsageError) as caught:
        input.read(path, {})
    assert "1 candidate of" in str(caught.value)
    assert "none was judged" in str(caught.value)
    assert f"\n  line 3: {why}" in str(caught.value) or f"line 3: a candidate should have {why}" in str(caught.value)


def test_of_many_errors_the_first_are_shown(tmp_path: Path) -> None:
    path = tmp_path / "given.jsonl"
    path.write_text("x\n" * 50)
    with pytest.raises(UsageError, match=r"50 candidates of .* cannot be read") as caught:
        input.read(path, {})
    assert str(caught.value).endswith("and 40 more")
    assert len(str(caught.value).splitlines()) == 12


@pytest.mark.parametrize("name", ["nothing.jsonl", "nothing", "notes.txt", "empty.jsonl", "folder"])
def test_an_input_that_is_none_is_refused(tmp_path: Path, name: str) -> None:
    (tmp_path / "folder").mkdir()
    for file in ("notes.txt", "empty.jsonl"):
        (tmp_path / file).touch()
    with pytest.raises(UsageError, match=r"does not exist|should be a folder|has no candidate"):
        input.read(tmp_path / name, {})


def test_a_folder_has_a_candidate_in_each_file(tmp_path: Path) -> None:
    folder = tmp_path / "given"
    (folder / "deep").mkdir(parents=True)
    (folder / "deep" / "a.py").write_text("def _own(): ...\ndef mine(x): return x")
    (folder / "b = c:d.py").write_text("def f(x): return x\ndef g(x): return x")
    (folder / "broken.py").write_text("def (")
    (folder / "_helper.py").write_text("")
    found = input.read(folder, {"operator": "op", "function": "f"})
    assert [(item.id, item.function) for item in found] == [
        ("b = c:d.py", "f"),
        ("broken.py", "f"),
        ("deep/a.py", "mine"),
    ]


def test_a_candidates_own_contract_replaces_the_given_one(tmp_path: Path) -> None:
    for name in ("mine.py", "theirs.py"):
        (tmp_path / name).touch()
    own = {"source": "x", "function": "f"}
    reference = {"reference": f"{tmp_path}/theirs.py:f", "example": f"{tmp_path}/theirs.py:args"}
    mine = f"{tmp_path}/mine.py:f"
    first, second, third = input.of_iterable([own, {**own, "operator": "op"}, {**own, "reference": mine}], reference)
    assert (first.reference, first.example) == (reference["reference"], reference["example"])
    assert (second.operator, second.reference, second.example) == ("op", "", "")
    assert (third.reference, third.example) == (mine, "")


@pytest.mark.parametrize("id", ["../../x", "; rm -rf ~", "a\nb", "\x1b[31m", "-h", "'\"`$(x)", "=:", "\u202e", "CON"])
def test_a_hostile_id_names_no_file_and_no_option(tmp_path: Path, id: str) -> None:
    (item,) = input.read(lines(tmp_path / "given.jsonl", obeys(id)), {})
    assert item.id == id
    arguments = Request.of(item, ["--device=cpu"], 1.0).arguments(tmp_path)
    assert arguments == [
        f"--candidate=op={tmp_path}/candidate.py:f",
        f"--report={tmp_path}/report.json",
        "-n0",
        "--device=cpu",
    ]


def test_a_path_is_called_by_a_name_that_no_option_misreads(tmp_path: Path) -> None:
    path = tmp_path / "a=b:c.py"
    path.write_text("text")
    item = Item("a", "f", path=str(path), reference=f"{path}:g").checked()
    folder = tmp_path / "judged"
    folder.mkdir()
    arguments = Request.of(item, [], 1.0).arguments(folder)
    assert arguments[:2] == [f"--candidate={folder}/candidate.py:f", f"--reference={path}:g"]
    assert (folder / "candidate.py").read_text() == "text"


def test_the_digest_is_that_of_all_files(tmp_path: Path) -> None:
    files = {name: tmp_path / f"{name}.py" for name in ("path", "reference", "example")}
    for file in files.values():
        file.write_text("1")
    item = Item("a", "f", path=str(files["path"]), reference=f"{files['reference']}:f", example=f"{files['example']}:f")
    before = {item.digest}
    for file in files.values():
        file.write_text("2")
        before.add(item.digest)
    assert len(before) == 4


def test_parquet_needs_pyarrow_or_is_read(tmp_path: Path) -> None:
    path = tmp_path / "given.parquet"
    path.write_bytes(b"nothing")
    try:
        import pyarrow as arrow
        import pyarrow.parquet as parquet
    except ImportError:
        with pytest.raises(Unavailable, match="Parquet needs pyarrow"):
            input.read(path, {})
        return
    with pytest.raises(UsageError, match="is no Parquet file that can be read"):
        input.read(path, {})
    parquet.write_table(
        arrow.Table.from_pylist([{**_GOOD, "path": None}, {**_GOOD, "source": None, "path": "x.py"}]), path
    )
    with pytest.raises(UsageError, match=r"\n  row 2: path was 'x.py'"):
        input.read(path, {})
    parquet.write_table(arrow.Table.from_pylist([{**_GOOD, "path": None}]), path)
    assert [item.id for item in input.read(path, {})] == ["row-1"]
