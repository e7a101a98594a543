"""Links out of docs/ lead somewhere on the site too: to a page that shows the file, or to a copy of it.

On GitHub `[compare](../harness/compare.py)` shows the file. Here it becomes a page of its own under `source/`. A link
to a file that is not there is left as it is, and mkdocs, which is strict, refuses it.
"""

from __future__ import annotations

import posixpath
import re
from pathlib import Path, PurePosixPath

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).parents[1]
#: Shown as text; a file of any other kind is copied.
LANGUAGES = {
    ".cpp": "cpp",
    ".cu": "cuda",
    ".h": "cpp",
    ".md": "markdown",
    ".py": "python",
    ".sh": "sh",
    ".toml": "toml",
    ".txt": "text",
    ".yml": "yaml",
}
_OUT = re.compile(r"\]\((?P<path>(?:\.\./)+[^)#\s]+)(?P<anchor>#[^)\s]*)?\)")


def _outside(link: str, page: str) -> PurePosixPath | None:
    """The file of the repository that a link of a page leads to; None where it stays in docs/ or leads nowhere."""
    path = PurePosixPath(posixpath.normpath(posixpath.join("docs", posixpath.dirname(page), link)))
    inside = path.parts[0] in ("docs", "..")
    return None if inside or not (ROOT / path).exists() else path


def _shown_at(path: PurePosixPath) -> str:
    """Where the site has it."""
    return f"source/{path}.md" if (ROOT / path).is_dir() or path.suffix in LANGUAGES else f"source/{path}"


def _shown(path: PurePosixPath) -> str:
    """The file as a page, or the files of a folder."""
    head = f"---\nsearch: {{exclude: true}}\n---\n\n# `{path}`\n\n"
    if (ROOT / path).is_dir():
        names = sorted(str(file.relative_to(ROOT / path)) for file in (ROOT / path).rglob("*.*") if file.is_file())
        return head + "\n".join(f"- `{name}`" for name in names if "__pycache__" not in name) + "\n"
    fence = "`" * 6  # more than any of our files has
    return f'{head}{fence}{LANGUAGES[path.suffix]} linenums="1"\n{(ROOT / path).read_text()}{fence}\n'


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add what the pages link to outside docs/."""
    for page in list(files.documentation_pages()):
        for link in _OUT.finditer(page.content_string):
            path = _outside(link["path"], page.src_uri)
            if path is None or files.get_file_from_path(_shown_at(path)) is not None:
                continue
            where = _shown_at(path)
            if where.endswith(".md"):
                files.append(File.generated(config, where, content=_shown(path)))
            else:
                files.append(File.generated(config, where, abs_src_path=str(ROOT / path)))
    return files


def on_page_markdown(markdown: str, page: Page, **_unused: object) -> str:
    """Point the links there. A page that shows a file is text, and has no links."""
    if page.file.src_uri.startswith("source/"):
        return markdown

    def pointed(link: re.Match[str]) -> str:
        path = _outside(link["path"], page.file.src_uri)
        if path is None:
            return link[0]
        there = posixpath.relpath(_shown_at(path), posixpath.dirname(page.file.src_uri) or ".")
        return f"]({there}{link['anchor'] or ''})"

    return _OUT.sub(pointed, markdown)
