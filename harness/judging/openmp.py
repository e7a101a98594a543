"""The settings of OpenMP that the calling thread has, in every OpenMP library that the process has loaded."""

from __future__ import annotations

import ctypes
import re
from pathlib import Path

_LIBRARY = re.compile(r"/lib(?:gomp|omp|iomp5)[^/]*\.so[^/]*$")

Settings = dict[str, int]


def libraries() -> dict[str, ctypes.CDLL]:
    """Each loaded library by the name of its file."""
    maps = Path("/proc/self/maps")
    lines = maps.read_text().splitlines() if maps.exists() else []
    paths = {line.split(maxsplit=5)[-1] for line in lines if _LIBRARY.search(line)}
    return {Path(path).name: ctypes.CDLL(path) for path in sorted(paths)}


def settings(library: ctypes.CDLL) -> Settings:
    """What `omp_get_...` tells."""
    kind, chunk = ctypes.c_uint(), ctypes.c_int()
    library.omp_get_schedule(ctypes.byref(kind), ctypes.byref(chunk))
    return {
        "max threads": library.omp_get_max_threads(),
        "dynamic": library.omp_get_dynamic(),
        "max active levels": library.omp_get_max_active_levels(),
        "kind of schedule": kind.value,
        "chunk of schedule": chunk.value,
    }


def set_all(library: ctypes.CDLL, was: Settings) -> None:
    """`omp_set_...` for each of them."""
    library.omp_set_num_threads(was["max threads"])
    library.omp_set_dynamic(was["dynamic"])
    library.omp_set_max_active_levels(was["max active levels"])
    library.omp_set_schedule(ctypes.c_uint(was["kind of schedule"]), was["chunk of schedule"])
