"""Put what the scripts of docs/findings printed into docs/findings.md: `python -m tools.findings_page OUTPUTS`.

OUTPUTS is a folder with a file NAME.txt for each script NAME.py that was run, on a GPU for example:

    for script in docs/findings/cuda_*.py; do timeout 60 python $script > OUTPUTS/$(basename $script .py).txt; done
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Mapping
from pathlib import Path

PAGE = Path("docs/findings.md")
SCRIPTS = Path("docs/findings")
_BLOCK = re.compile(r"```python\n(?P<code>.*?)\n```\n(?:\n```text\n.*?\n```\n)?", re.DOTALL)


def filled(page: str, outputs: Mapping[str, str]) -> str:
    """The page with each script's output below it. `outputs` has them by the script's text; an older one is replaced.

    Raises ValueError for a script that is not in the page.
    """
    known = {code.rstrip(): text.rstrip() for code, text in outputs.items()}
    absent = known.keys() - {found["code"] for found in _BLOCK.finditer(page)}
    if absent:
        raise ValueError(f"a script is not in the page: {sorted(absent)[0].splitlines()[0]}")

    def with_output(found: re.Match[str]) -> str:
        if found["code"] not in known:
            return found[0]
        return f"```python\n{found['code']}\n```\n\n```text\n{known[found['code']]}\n```\n"

    return _BLOCK.sub(with_output, page)


def main() -> None:
    """Fill the page; an output that is empty is left out, since its script failed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("outputs", type=Path)
    printed = {path.stem: path.read_text(encoding="utf-8") for path in parser.parse_args().outputs.glob("*.txt")}
    outputs = {(SCRIPTS / f"{name}.py").read_text(encoding="utf-8"): text for name, text in printed.items() if text}
    PAGE.write_text(filled(PAGE.read_text(encoding="utf-8"), outputs), encoding="utf-8")
    print(
        f"{len(outputs)} outputs written to {PAGE}; without output: {', '.join(n for n in printed if not printed[n])}"
    )


if __name__ == "__main__":
    main()
