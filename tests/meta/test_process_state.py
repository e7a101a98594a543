"""Which changes of a process count as a candidate's."""

from __future__ import annotations

import os
import sys
import warnings

import pytest
import torch

from harness.judging import openmp
from harness.judging.one_thread import one_thread
from harness.judging.process_state import watched


@pytest.mark.parametrize(("path", "counts"), [("/x/setuptools/_vendor", False), ("/x/setuptools", True), ("/x", True)])
def test_what_setuptools_adds_to_the_import_path_is_nobodys_fault(
    monkeypatch: pytest.MonkeyPatch, path: str, counts: bool
) -> None:
    """torch.utils.cpp_extension imports setuptools, which adds a folder of its own."""
    monkeypatch.setattr(sys, "path", list(sys.path))
    with watched("cpu") as watch:
        sys.path.append(path)
        assert ("import path" in [name for name, _, _ in watch.changes()]) is counts
    assert (path in sys.path) is not counts


@pytest.mark.parametrize(
    ("name", "counts"),
    [("TORCHINDUCTOR_CACHE_DIR", False), ("TRITON_CACHE_DIR", False), ("TRITON_PTXAS_PATH", False), ("TRITON_X", True)],
)
def test_what_torch_compile_puts_into_the_environment_is_nobodys_fault(
    monkeypatch: pytest.MonkeyPatch, name: str, counts: bool
) -> None:
    """On a GPU Inductor tells Triton by variables where its cache and its assembler are."""
    monkeypatch.delenv(name, raising=False)
    with watched("cpu") as watch:
        os.environ[name] = "/x"
        assert ("environment variables" in [changed for changed, _, _ in watch.changes()]) is counts


def test_a_warning_of_the_compiler_is_no_error() -> None:
    """Other warnings are errors in this process. Inductor begins this one with an empty line."""
    text = "\nOnline softmax is disabled on the fly since Inductor decides to\nsplit the reduction."
    warnings.warn(text, UserWarning, stacklevel=1)
    with pytest.raises(UserWarning, match="softmax"):
        warnings.warn("softmax is disabled", UserWarning, stacklevel=1)


@pytest.mark.skipif("mkl_get_max_threads" not in torch.__config__.parallel_info(), reason="torch is built without MKL")
def test_mkl_has_the_threads_that_it_had_before() -> None:
    """Torch's number is OpenMP's. While MKL had two threads and torch one, each square root waited for a processor."""

    def of_mkl() -> str:
        return torch.__config__.parallel_info().partition("mkl_get_max_threads() : ")[2].split()[0]

    with one_thread():
        with watched("cpu") as watch:
            torch.set_num_threads(3)
            for library in openmp.libraries().values():
                openmp.set_all(library, openmp.settings(library) | {"max threads": 1})
            assert torch.get_num_threads() == 1
            assert of_mkl() == "3"
            assert list(watch.changes()) == [("number of MKL's threads", "3", "1")]
        assert of_mkl() == "1"
