"""Text of a candidate cannot look like what the suite or a system of continuous integration says."""

from __future__ import annotations

import pytest

from harness.judging.foreign_text import message, name, place, readable


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("\x1b[2J", r"\x1b[2J"),
        ("a\u2028b\u200e\uffff", r"a\u2028b\u200e\uffff"),
        ("::error::no", r"\x3a:error::no"),
        ("a\n  ::stop-commands::x", "a\n  \\x3a:stop-commands::x"),
        ("see at::native::add and a::b", "see at::native::add and a::b"),
        ("slice [::2], x[:, ::-1]", "slice [::2], x[:, ::-1]"),
        ("##vso[task.complete]", r"\x23#vso[task.complete]"),
        ("x ##teamcity[a] ##[error]b", r"x \x23#teamcity[a] \x23#[error]b"),
        ("## a heading, #1, a##b", "## a heading, #1, a##b"),
    ],
)
def test_commands_are_written_out(text: str, shown: str) -> None:
    assert readable({"text": [text, 1, None]}) == {"text": [shown, 1, None]}


def test_a_name_is_one_short_line() -> None:
    assert name("ValueError") == "ValueError"
    assert name("A\n\n31 passed") == "A 31 passed"
    assert name("K" * 10**6) == f"{'K' * 200}..."


def test_a_file_is_named_in_one_line() -> None:
    assert place("/a/kernels.py") == "/a/kernels.py"
    assert place("/a/x\n::error::y\x1b.py") == r"/a/x\n\x3a:error::y\x1b.py"


def test_further_lines_are_indented() -> None:
    assert message("one") == "one"
    assert message("") == ""
    assert message("one\n  - explained\ntwo\r\nthree") == "one\n  - explained\n    two\n    three"
