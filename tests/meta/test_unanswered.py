"""The list of cells without an answer is that of the records, and an answer is one."""

from __future__ import annotations

import pytest

from harness.rendering.tables import insert
from harness.report.cell import DECLARED, FAIL, NO_EVIDENCE, NOT_RUN, PASS, Cell
from tests.meta.conftest import ROOT
from tools.unanswered import DOCUMENT, MARK, Key, Told, asked, table, told, unanswered

KEY: Key = ("lltm", "mine", "sizes", "float32")


def _cell(verdict: str) -> Cell:
    return Cell(*KEY[:2], "cuda", KEY[3], KEY[2], verdict, "a reason")


def test_the_page_has_the_list_of_the_records() -> None:
    document = (ROOT / DOCUMENT).read_text(encoding="utf-8")
    drawn = insert(table(unanswered(asked(), told())) + "\n", document, MARK)
    assert document == drawn, "run `python -m tools.unanswered`"


def test_what_is_asked_is_what_a_run_asks() -> None:
    keys = asked()
    assert len(set(keys)) == len(keys)
    assert ("lltm", "cuda-fused", "cuda-graphs", "bfloat16") in keys
    assert ("lltm", "torch-compile", "combinations", "float64") in keys
    assert ("lltm", "aten-cpp", "imports", "") in keys, "imports is judged once"
    assert not [key for key in keys if key[2] == "sanitizers"], "it is asked on the CPU alone"


@pytest.mark.parametrize(
    ("verdicts", "says"),
    [
        ([], ""),
        ([FAIL], "fail at 2"),
        ([PASS, NO_EVIDENCE], None),
        ([FAIL, PASS], None),
        ([FAIL, DECLARED], None),
        ([NOT_RUN], None),
        ([NO_EVIDENCE, FAIL], "fail at 3"),
    ],
)
def test_an_answer_is_one(verdicts: list[str], says: str | None) -> None:
    cells = {KEY: [Told(str(number), _cell(verdict), "a.json") for number, verdict in enumerate(verdicts, start=2)]}
    assert unanswered([KEY], cells) == ({} if says is None else {KEY: says})


def test_the_table_names_every_cell() -> None:
    found = {KEY: "", (*KEY[:3], "bfloat16"): "", (*KEY[:2], "layouts", "float32"): "fail at 2"}
    assert table(found).splitlines() == [
        "3 cells:",
        "",
        "| backend | operator | property | dtypes | the last record |",
        "|---|---|---|---|---|",
        "| mine | lltm | layouts | float32 | fail at 2 |",
        "| mine | lltm | sizes | float32, bfloat16 |  |",
    ]
    assert table({}) == "Every cell has an answer."
