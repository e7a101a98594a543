"""A report that a notebook and `print` show as a verdict."""

from __future__ import annotations

from io import StringIO

from rich.console import Console

from harness.rendering import summary, tables
from harness.report.report import Report

_WIDTH = 100


class NotebookReport(Report):
    """A report; IPython displays its Markdown."""

    def _repr_markdown_(self) -> str:
        return summary.markdown(self)

    def __str__(self) -> str:
        stream = StringIO()
        tables.print_report(self, Console(file=stream, width=_WIDTH, color_system=None, force_terminal=True))
        return "\n".join(line.rstrip() for line in stream.getvalue().splitlines())
