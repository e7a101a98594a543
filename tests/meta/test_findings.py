"""Each script of docs/findings.md stands in the page, and prints what the page says with the torch that it names.

Figures may differ on a processor with other vector instructions, so the words are compared, and the number of figures.
"""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path

import pytest
import torch

from backends.torch_native.onednn import computes_in
from tests.meta.conftest import ROOT, Run
from tests.meta.tiers import WHOLE
from tools.findings_page import filled

PAGE = (ROOT / "docs" / "findings.md").read_text()
SCRIPTS = sorted((ROOT / "docs" / "findings").glob("*.py"))
#: The releases of which the page speaks: on the CPU, and on a GPU.
RELEASE, OF_GPU = "2.13.0", "2.11.0"


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.stem)
def test_the_script_is_in_the_page(script: Path) -> None:
    assert f"```python\n{script.read_text().rstrip()}\n```" in PAGE
    assert f"torch {RELEASE}" in PAGE
    assert f"torch {OF_GPU} on an H200" in PAGE


def _marks(script: Path) -> list[pytest.MarkDecorator]:
    """What Inductor does is shown by several compilations."""
    return [pytest.mark.long(WHOLE)] if script.stem.startswith("inductor_") else []


@pytest.mark.parametrize("script", [pytest.param(one, id=one.stem, marks=_marks(one)) for one in SCRIPTS])
def test_it_prints_what_the_page_says(script: Path, python: Run) -> None:
    of_gpu = script.stem.startswith("cuda_")
    if of_gpu and not torch.cuda.is_available():
        pytest.skip("no CUDA device")
    if script.stem.startswith("avx512_") and torch.backends.cpu.get_cpu_capability() != "AVX512":
        pytest.skip("a processor without AVX512")
    if script.stem.startswith("avx512fp16_") and not computes_in(torch.float16):
        pytest.skip("a processor without AVX512-FP16")
    packages = re.findall(r"^(?:from|import) (\w+)", script.read_text(), re.MULTILINE)
    missing = [name for name in packages if importlib.util.find_spec(name) is None]
    if missing:
        pytest.skip(f"{', '.join(missing)} is not installed: docs/packages.md says how")
    release = OF_GPU if of_gpu else RELEASE
    if not torch.__version__.startswith(release):
        pytest.skip(f"the page speaks of torch {release}, and here is {torch.__version__}")
    done = python(script)
    assert done.returncode == 0, done.stderr
    assert _words(f"```text\n{done.stdout.rstrip()}\n```") in _words(PAGE)


def _words(text: str) -> str:
    return re.sub(r"\d+(\.\d+)?(e[+-]\d+)?", "#", text)


def test_outputs_are_put_below_their_scripts() -> None:
    page = "# A\n\n```python\nfirst()\n```\n\n```text\nold\n```\n\nwords\n\n```python\nsecond()\n```\n\n# B\n"
    new = filled(page, {"first()\n": "new\n", "second()\n": "2\n"})
    below = (
        "```python\nfirst()\n```\n\n```text\nnew\n```\n\nwords\n\n```python\nsecond()\n```\n\n```text\n2\n```\n\n# B\n"
    )
    assert new == f"# A\n\n{below}"
    assert filled(new, {"second()": "2"}) == new
    with pytest.raises(ValueError, match="third"):
        filled(page, {"third()": "3"})


def test_what_the_page_says_already_changes_nothing() -> None:
    codes = {script.read_text().rstrip() for script in SCRIPTS}
    texts = {code: PAGE.partition(f"{code}\n```\n\n```text\n")[2].partition("\n```\n")[0] for code in codes}
    said = {code: text for code, text in texts.items() if text}
    assert len(said) > 15
    assert filled(PAGE, said) == PAGE
