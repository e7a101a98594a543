"""The site of docs/: it builds in strict mode, which finds dead links, and no page needs a network."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from pathlib import Path

import pytest

from tests.meta.conftest import ROOT, Run

pytest.importorskip("mkdocs", reason="needs mkdocs, which `pip install --group docs` brings")

#: Attributes by which a page loads something; `href` of a plain link does not.
LOADING = {"link": "href", "script": "src", "img": "src", "iframe": "src", "source": "src", "object": "data"}


class _Loaded(HTMLParser):
    def __init__(self, text: str) -> None:
        super().__init__()
        self.found: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        address = dict(attrs).get(LOADING.get(tag, ""))
        if address:
            self.found.append(address)


@pytest.fixture(scope="module")
def site(python: Run, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site as `nox -s docs` builds it."""
    folder = tmp_path_factory.mktemp("site")
    done = python("-m", "mkdocs", "build", "--site-dir", folder, NO_MKDOCS_2_WARNING="1")
    assert done.returncode == 0, done.stderr
    return folder


def _pages(site: Path) -> list[Path]:
    """Pages made by mkdocs; the report pages are tested elsewhere."""
    return [page for page in site.rglob("*.html") if "reports" not in page.parts]


def test_every_page_of_docs_is_there(site: Path) -> None:
    names = {page.relative_to(ROOT / "docs").with_suffix(".html") for page in (ROOT / "docs").rglob("*.md")}
    assert {page.relative_to(site) for page in _pages(site)} >= names
    menu = (site / "index.html").read_text()
    assert [name for name in names if f'href="{name}"' not in menu] == [], "the menu leads to each"


def test_no_page_loads_from_elsewhere(site: Path) -> None:
    for page in _pages(site):
        elsewhere = [address for address in _Loaded(page.read_text()).found if re.match(r"(https?:)?//", address)]
        assert elsewhere == [], page
    for sheet in site.rglob("*.css"):
        assert not re.search(r"url\([\"']?(https?:)?//|@import", sheet.read_text()), sheet


def test_what_is_embedded_is_there(site: Path) -> None:
    for page in _pages(site):
        for address in _Loaded(page.read_text()).found:
            if not address.startswith("data:"):
                assert (page.parent / address.partition("#")[0]).exists() or address.startswith("/"), (page, address)


@pytest.mark.parametrize(("link", "known"), [("../spec/rounding.py", True), ("../spec/nothing.py", False)])
def test_a_link_out_of_docs_leads_to_the_file_or_fails_the_build(
    link: str, known: bool, python: Run, tmp_path: Path
) -> None:
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "index.md").write_text(f"# Page\n\n[that]({link})\n")
    settings = "site_name: x\nstrict: true\nuse_directory_urls: false\nvalidation: {unrecognized_links: warn}\n"
    (tmp_path / "mkdocs.yml").write_text(f"{settings}hooks: [{ROOT}/docs/hooks.py]\n")
    done = python("-m", "mkdocs", "build", "-f", tmp_path / "mkdocs.yml", NO_MKDOCS_2_WARNING="1")
    assert (done.returncode == 0) is known, done.stderr
    if known:
        assert 'href="source/spec/rounding.py.html"' in (tmp_path / "site" / "index.html").read_text()
        assert "class Rounding" in re.sub("<.*?>", "", (tmp_path / "site/source/spec/rounding.py.html").read_text())
