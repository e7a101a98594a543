"""Names on the command line are found; for an unknown one there is one sentence with a suggestion."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from backends.base import PythonFunction
from harness import discovery, verify
from harness.candidate import candidate
from harness.discovery import (
    all_backends,
    backend,
    load_candidate,
    load_function,
    operator,
    operators,
    require_device,
)
from harness.errors import Broken, Unavailable, UnknownName, UsageError
from harness.properties import all_properties
from harness.report.cell import DECLARED, FAIL, NOT_RUN, PASS
from harness.running import sandbox
from harness.running.selection import Selection, slots

BACKEND = "from backends.base import Backend\nBACKEND = Backend('a test', devices=('cpu',))\n"
LLTM = "from backends.base import PythonFunction\nIMPLEMENTATION = PythonFunction(lambda *inputs: inputs)\n"


@pytest.fixture(autouse=True)
def _forget(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Remove the modules that these tests import."""
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    yield
    for name, module in list(sys.modules.items()):
        if str(getattr(module, "__file__", "")).startswith(str(tmp_path)):
            del sys.modules[name]
    all_backends.cache_clear()
    operators.cache_clear()


def _folder(path: Path, init: str = BACKEND, lltm: str = LLTM) -> Path:
    path.mkdir(parents=True)
    (path / "__init__.py").write_text(init)
    (path / "lltm.py").write_text(lltm)
    return path


@pytest.mark.parametrize(
    ("selection", "says"),
    [
        (Selection(operators=("ltm",)), "unknown operator 'ltm'; did you mean 'lltm'\\? Known: .*lltm"),
        (Selection(backends=("aten_cpp",)), "unknown backend 'aten_cpp'; did you mean 'aten-cpp'\\? Known: aten-cpp, "),
        (
            Selection(devices=("gpu",)),
            "unknown device 'gpu'; did you mean 'cuda'\\? Known: cpu, cuda, cuda-emulated, triton",
        ),
        (Selection(devices=("zzz",)), "unknown device 'zzz' Known: cpu"),
        (Selection(dtypes=("half",)), "unknown dtype 'half'; did you mean 'float16'\\?"),
        (Selection(dtypes=("flaot32",)), "unknown dtype 'flaot32'; did you mean 'float32'\\?"),
        (Selection(candidates=("ltm=math:sin",)), "unknown operator 'ltm'; did you mean 'lltm'\\?"),
    ],
)
def test_an_unknown_name_suggests_the_near_one(selection: Selection, says: str) -> None:
    with pytest.raises(UnknownName, match=says):
        slots(selection)


def test_names_are_looked_up_with_the_same_words() -> None:
    for look_up in (operator, backend, require_device):
        with pytest.raises(UnknownName, match=r"unknown .* 'nothing'"):
            look_up("nothing")
    with pytest.raises(Unavailable, match="has no 'nothing'"):
        discovery.load_function("nothing", "python-autograd", "cpu")
    with pytest.raises(Unavailable, match="runs on cpu, cuda, not on 'cuda-emulated'"):
        discovery.load_function("lltm", "python-autograd", "cuda-emulated")


def test_a_backend_path_is_a_folder_or_a_folder_of_folders(tmp_path: Path) -> None:
    one = _folder(tmp_path / "lonely_one")
    for name in ("first", "second_one"):
        _folder(tmp_path / "many" / name)
    (tmp_path / "many" / "no_backend").mkdir()
    shipped = set(all_backends())
    found = all_backends((one, tmp_path / "many"))
    assert set(found) - shipped == {"lonely-one", "first", "second-one"}
    assert isinstance(found["lonely-one"].implementation("lltm"), PythonFunction)
    assert found["lonely-one"].implementation("layer_norm") is None, "a missing implementation is not broken"
    chosen = slots(Selection(backends=("lonely-one",), backend_paths=(one,), operators=("lltm",), dtypes=("float64",)))
    assert [slot.id for slot in chosen] == ["lltm-lonely-one-cpu-float64"]


def test_a_backend_path_that_is_none_is_told(tmp_path: Path) -> None:
    for path in (tmp_path / "missing", tmp_path):
        with pytest.raises(UsageError, match=f"--backend-path {path} should be a backend's folder"):
            all_backends((path,))


def test_two_backends_of_one_name_are_told(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="there is a backend 'aten-cpp' already; rename the folder"):
        all_backends((_folder(tmp_path / "aten_cpp"),))
    with pytest.raises(UsageError, match="there is a backend 'mine' already; rename the folder"):
        all_backends((_folder(tmp_path / "a" / "mine"), _folder(tmp_path / "b" / "mine")))


@pytest.mark.parametrize(
    ("init", "says"),
    [
        ("raise OSError('libfoo.so is missing')", r"does not import: OSError: libfoo\.so is missing"),
        ("exit(3)", "does not import: SystemExit: 3"),
        ("def (", "does not import: SyntaxError"),
        ("", r"mine/__init__\.py has BACKEND = None, but should set BACKEND = Backend\(\.\.\.\)"),
        (BACKEND.replace("('cpu',)", "('gpu',)"), "devices holds 'gpu'; a device is one of cpu, cuda"),
        (BACKEND.replace(")\n", ", absent={'lltm': ' '})\n"), "there is no 'lltm', but the reason is empty"),
    ],
)
def test_a_backend_that_cannot_be_used_is_broken(tmp_path: Path, init: str, says: str) -> None:
    with pytest.raises(Broken, match=says):
        all_backends((_folder(tmp_path / "mine", init),))


@pytest.mark.parametrize(
    ("lltm", "says"),
    [
        ("raise OSError('libfoo.so is missing')", r"lltm does not import: OSError: libfoo\.so is missing"),
        ("exit(3)", "does not import: SystemExit: 3"),
        ("", r"mine/lltm\.py has IMPLEMENTATION = None, but should set PythonFunction"),
        ("IMPLEMENTATION = print", "has IMPLEMENTATION = <built-in function print>"),
    ],
)
def test_an_implementation_that_cannot_be_used_is_broken(tmp_path: Path, lltm: str, says: str) -> None:
    path = _folder(tmp_path / "mine", lltm=lltm)
    (slot,) = slots(Selection(("lltm",), ("mine",), ("cpu",), ("float32",), backend_paths=(path,)))
    for _ in range(2):
        with pytest.raises(Broken, match=says):
            slot.subject()


def test_a_missing_package_is_not_run_and_names_the_way_out(tmp_path: Path) -> None:
    lltm = "from backends.base import MissingDependency\nIMPLEMENTATION = MissingDependency('no_such_kernels')\n"
    path = _folder(tmp_path / "mine", lltm=lltm)
    (slot,) = slots(Selection(("lltm",), ("mine",), ("cpu",), ("float32",), backend_paths=(path,)))
    cell = slot.judge(all_properties()["forward-parity"])
    assert (cell.verdict, cell.reason) == (
        NOT_RUN,
        "no_such_kernels is not installed: pip install no_such_kernels",
    )


NO_LLTM = BACKEND.replace(")\n", ", absent={'lltm': 'nobody asked'})\n")


def test_an_operator_that_is_absent_on_purpose_is_declared_for_every_property(tmp_path: Path) -> None:
    path = _folder(tmp_path / "mine", init=NO_LLTM)
    (path / "lltm.py").unlink()
    chosen = Selection(("lltm", "mlp"), ("mine",), ("cpu",), ("float32",), backend_paths=(path,))
    lltm, mlp = slots(chosen)
    for property in all_properties().values():
        cell = lltm.judge(property)
        assert (cell.verdict, cell.reason) == (DECLARED, "nobody asked")
        cell = mlp.judge(property)
        assert (cell.verdict, cell.reason) == (NOT_RUN, "mine does not implement mlp")


def test_a_backend_on_request_is_judged_where_it_is_named(tmp_path: Path) -> None:
    path = _folder(tmp_path / "mine", init=BACKEND.replace(")\n", ", on_request='it takes a week')\n"))
    where = Selection(("lltm",), (), ("cpu",), ("float32",), backend_paths=(path,))
    (unnamed,) = (slot for slot in slots(where) if slot.backend == "mine")
    cell = unnamed.judge(all_properties()["sizes"])
    reason = "mine is judged where it is named, by --backend mine: it takes a week"
    assert (cell.verdict, cell.reason) == (NOT_RUN, reason)
    (named,) = slots(replace(where, backends=("mine",)))
    assert named.subject().backend == "mine"


def test_an_operator_that_is_declared_absent_and_there_is_broken(tmp_path: Path) -> None:
    path = _folder(tmp_path / "mine", init=NO_LLTM)
    (slot,) = slots(Selection(("lltm",), ("mine",), ("cpu",), ("float32",), backend_paths=(path,)))
    cell = slot.judge(all_properties()["sizes"])
    assert cell.verdict == FAIL
    assert "mine declares that it has no lltm (nobody asked), but it has: remove the declaration" in cell.reason


def test_a_shipped_backend_tells_why_an_operator_is_absent() -> None:
    with pytest.raises(Unavailable, match="backend 'cuda-accessor' has no 'lltm_sequence': its kernels would be"):
        discovery.load_function("lltm_sequence", "cuda-accessor", "cuda-emulated")


def test_an_operator_of_which_a_backend_does_not_speak_has_no_slot(tmp_path: Path) -> None:
    """No file and no reason: no cells, whether the backend is named, the operator, or none of them."""
    path = _folder(tmp_path / "mine", init=BACKEND.replace(")\n", ", absent={'lltm_sequence': 'it is a loop'})\n"))
    where = Selection((), (), ("cpu",), ("float32",), backend_paths=(path,))
    spoken_of = ["lltm", "lltm_sequence"]
    for chosen in (where, replace(where, backends=("mine",))):
        assert [slot.operator.name for slot in slots(chosen) if slot.backend == "mine"] == spoken_of
    assert "mine" not in {slot.backend for slot in slots(replace(where, operators=("mlp",)))}
    (asked,) = slots(replace(where, operators=("mlp",), backends=("mine",)))
    assert asked.judge(all_properties()["sizes"]).reason == "mine does not implement mlp"


def test_every_operator_has_an_implementation() -> None:
    for each in operators():
        assert any(found.implementation(each) for found in all_backends().values()), each


def test_absent_names_operators_that_there_are() -> None:
    for name, found in all_backends().items():
        assert set(found.backend.absent) <= set(operators()), name


def test_a_candidate_is_a_file_or_a_module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "my_kernels.py").write_text("DECLARED = {'gradcheck': 'slow'}\ndef mine(): return 1\n")
    for text in ("lltm=my_kernels.py:mine", f"lltm={tmp_path}/my_kernels.py:mine", "lltm=my_kernels:mine"):
        found = candidate(text)
        function, declared = load_candidate(found)
        assert (found.operator, found.name, function()) == ("lltm", "mine", 1)
        assert declared == {"gradcheck": "slow"}


def test_two_files_of_one_name_are_two_candidates(tmp_path: Path) -> None:
    for folder in ("a", "b"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "k.py").write_text(f"def kernel(): return {folder!r}\ndef {folder}(): return {folder!r}\n")
    texts = [f"lltm={tmp_path}/{folder}/k.py" for folder in ("a", "b")]
    assert [load_candidate(candidate(f"{text}:kernel"))[0]() for text in texts] == ["a", "b"]
    with pytest.raises(UsageError, match="two candidates are called 'kernel': rename one"):
        slots(Selection(candidates=tuple(f"{text}:kernel" for text in texts)))
    twice = Selection(candidates=(f"{texts[0]}:a", f"{texts[0]}:a", f"{texts[1]}:b"), dtypes=("float32",))
    assert [slot.backend for slot in slots(twice)] == ["a", "b"]


@pytest.mark.parametrize("text", ["", "lltm", "lltm=", "lltm=k.py", "lltm=k.py:", "=k.py:f", "lltm=:f", "k.py:f"])
def test_a_malformed_candidate_is_told(text: str) -> None:
    with pytest.raises(UsageError, match=r"--candidate was .*, but should be OPERATOR=FILE\.py:FUNCTION or OPERATOR="):
        candidate(text)


@pytest.mark.parametrize(
    ("source", "attribute", "error", "says"),
    [
        ("def kernel(): ...", "kernl", UnknownName, r"unknown function in .*k\.py 'kernl'; did you mean 'kernel'\?"),
        ("kernel = 3", "kernel", UsageError, "kernel is int, but should be a function"),
        ("import no_such_module", "kernel", Broken, "does not import: ModuleNotFoundError: .*no_such_module"),
        ("exit('bye')", "kernel", Broken, "does not import: SystemExit: bye"),
        ("def kernel(): ...\nDECLARED = ['x']", "kernel", UsageError, r"DECLARED was \['x'\], but should be a dict"),
        ("def kernel(): ...\nDECLARED = {'sizes': ''}", "kernel", UsageError, "DECLARED was .*property name to reason"),
        ("def kernel(): ...\nDECLARED = {'sizes': 3}", "kernel", UsageError, "DECLARED was"),
        (
            "def kernel(): ...\nDECLARED = {'double-bakward': 'no'}",
            "kernel",
            UnknownName,
            r"unknown property in DECLARED 'double-bakward'; did you mean 'double-backward'\?",
        ),
    ],
)
def test_a_candidate_that_cannot_be_used_is_told(
    tmp_path: Path, source: str, attribute: str, error: type[Exception], says: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "k.py").write_text(source)
    monkeypatch.syspath_prepend(str(tmp_path))
    for where, words in ((f"{tmp_path}/k.py", says), ("k", says.replace(r"k\.py", "k"))):
        (slot,) = slots(Selection(candidates=(f"lltm={where}:{attribute}",), dtypes=("float32",), devices=("cpu",)))
        with pytest.raises(error, match=words):
            slot.subject()


def test_missing_files_are_told(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"gone\.py does not exist"):
        candidate(f"lltm={tmp_path}/gone.py:kernel")
    with pytest.raises(Broken, match="no_such_module does not import"):
        load_candidate(candidate("lltm=no_such_module:kernel"))
    with pytest.raises(UsageError, match=r"gone\.py does not exist"):
        operators((tmp_path / "gone.py",))


def test_a_contract_from_outside_joins_and_replaces_none(tmp_path: Path) -> None:
    source = (
        "from dataclasses import replace\nfrom spec.lltm import OPERATOR\nOPERATOR = replace(OPERATOR, name={!r})\n"
    )
    for name, text in (("other", source.format("other")), ("clash", source.format("lltm")), ("none", "")):
        (tmp_path / f"{name}.py").write_text(text)
    assert set(operators((tmp_path / "other.py",))) == {*operators(), "other"}
    with pytest.raises(UsageError, match="there is an operator 'lltm' already; rename it"):
        operators((tmp_path / "clash.py",))
    with pytest.raises(Broken, match=r"none\.py sets no OPERATOR"):
        operators((tmp_path / "none.py",))


@dataclass(frozen=True)
class _EntryPoint:
    name: str
    value: str


def test_entry_points_are_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(tmp_path))
    _folder(tmp_path / "plugged_in")

    def plug(*entries: _EntryPoint) -> None:
        all_backends.cache_clear()
        monkeypatch.setattr(discovery, "entry_points", lambda group: entries if "backends" in group else ())

    plug(_EntryPoint("plugged-in", "plugged_in"))
    assert isinstance(all_backends()["plugged-in"].implementation("lltm"), PythonFunction)
    plug(_EntryPoint("gone", "no_such_module"))
    with pytest.raises(Broken, match="no_such_module does not import"):
        all_backends()
    plug(_EntryPoint("aten-cpp", "plugged_in"))
    with pytest.raises(UsageError, match="there is a backend 'aten-cpp' already"):
        all_backends()


def test_interpreted_triton_is_told_from_a_machine_without_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda _: None)
    with pytest.raises(Unavailable, match="triton is not installed: pip install triton"):
        discovery.require_device("triton-interpreted")


def test_a_function_of_this_process_is_interpreted_if_triton_was_told_so(monkeypatch: pytest.MonkeyPatch) -> None:
    """Triton reads the variable when a kernel is defined; another process gets it from the suite."""
    usual = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name, *_: usual("json" if name == "triton" else name))
    monkeypatch.delenv("TRITON_INTERPRET", raising=False)
    asked: dict[str, Any] = {"operator": "mlp", "device": "triton-interpreted", "properties": "forward-parity"}
    with pytest.raises(UsageError, match="device was 'triton-interpreted', but TRITON_INTERPRET is not 1: set it"):
        verify(load_function("mlp", "python-autograd", "cpu"), **asked)
    monkeypatch.setenv("TRITON_INTERPRET", "1")
    (cell,) = verify(load_function("mlp", "python-autograd", "cpu"), dtypes="float32", **asked).cells
    assert (cell.device, cell.verdict) == ("triton-interpreted", PASS), cell
    folder = Path("scratch")
    monkeypatch.delenv("TRITON_INTERPRET")
    assert sandbox.environment(folder, "triton-interpreted")["TRITON_INTERPRET"] == "1"
    assert "TRITON_INTERPRET" not in sandbox.environment(folder, "cpu")


def test_a_candidate_is_not_judged_where_cuda_is_emulated() -> None:
    with pytest.raises(UsageError, match="--device was 'cuda-emulated', but should be another for the candidate f"):
        slots(Selection(candidates=("mlp=math:f",), devices=("cuda-emulated",)))
