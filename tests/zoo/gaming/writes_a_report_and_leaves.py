"""Writes a complete, green report and ends the process with code 0 when it is imported (own trial)."""

import contextlib
import os
from pathlib import Path

import spec

_ROOT = Path(spec.__file__).parents[1]
for _name in ("reports/conformance.json", "../writes_a_report_and_leaves.json"):
    with contextlib.suppress(OSError):
        (_ROOT / _name).parent.mkdir(exist_ok=True)
        (_ROOT / _name).write_text('{"complete": true, "cells": []}')
os._exit(0)
