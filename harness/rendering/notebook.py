"""A report that a notebook shows as a table."""

from __future__ import annotations

from harness.rendering import summary
from harness.report.report import Report


class NotebookReport(Report):
    """A report; IPython displays its Markdown."""

    def _repr_markdown_(self) -> str:
        return summary.markdown(self)
