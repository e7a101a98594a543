"""The sessions; `nox -l` lists them. Options after `--` go to pytest: `nox -s "cpu(float32)" -- --backend aten-cpp`.

All sessions share one environment, .nox/shared, so that torch is installed once. With `nox --no-venv` they use the
packages of the interpreter that runs nox, which also works without a network.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import nox

nox.needs_version = ">=2025.2.9"
nox.options.sessions = ["conformance"]
nox.options.reuse_venv = "yes"
nox.options.error_on_missing_interpreters = True

DTYPES = ["float32", "float64", "float16", "bfloat16"]
SUITE = "tests/conformance"
GROUPS = nox.project.dependency_groups(nox.project.load_toml("pyproject.toml"), "dev")

SHARED = Path(".nox/shared").resolve()

#: What is installed for each backend of a published package. All of it is named, since some pin torch or numpy.
PACKAGES = {
    "liger": ["triton", "liger-kernel"],
    "fla": ["triton", "fla-core", "einops"],
    "flag-gems": ["triton", "flag-gems", "SQLAlchemy", "PyYAML", "packaging"],
    "quack": [
        "quack-kernels",
        "einops",
        "apache-tvm-ffi",
        "torch-c-dlpack-ext",
        "nvidia-cutlass-dsl",
        "nvidia-cutlass-dsl-libs-base",
        "nvidia-cutlass-dsl-libs-core",
        "nvidia-cutlass-dsl-libs-cu13",
        "cuda-bindings",
        "protobuf",
    ],
}


def prepare(session: nox.Session) -> str:
    """Install the project and its tools, pinned; returns the Python to run."""
    if session.venv_backend == "none":
        return sys.executable
    python, stamp = SHARED / "bin" / "python", SHARED / "installed"
    wanted = "".join(Path(name).read_text() for name in ("pyproject.toml", "constraints.txt"))
    digest = hashlib.sha256(wanted.encode()).hexdigest()
    if not stamp.exists() or stamp.read_text() != digest:
        session.log("first run: a virtual environment in .nox/shared, a minute or two; later runs reuse it")
        session.run("python", "-m", "venv", str(SHARED))
        install = [
            str(python),
            "-m",
            "pip",
            "install",
            "--quiet",
            "--disable-pip-version-check",
            "-c",
            "constraints.txt",
        ]
        for what, packages in (("torch, 200 MB", ["torch"]), ("the project and its tools", ["-e", ".", *GROUPS])):
            session.log(f"installing {what}")
            session.run(*install, *packages, external=True)
        stamp.write_text(digest)
    return str(python)


def run(session: nox.Session, program: str, *arguments: str, env: dict[str, str] | None = None) -> None:
    """Run a program of the environment; `python` is its interpreter."""
    python = Path(prepare(session))
    session.run(str(python if program == "python" else python.parent / program), *arguments, env=env, external=True)


def judge(session: nox.Session, report: str, *options: str, env: dict[str, str] | None = None) -> None:
    """Run the conformance suite in parallel, as cores and memory allow; write `reports/<report>.json`."""
    workers = ["-n", "auto", "--dist", "loadgroup", "-q", "--no-header", "-r", "fE"]
    where = [] if any(option.startswith("tests/") for option in (*options, *session.posargs)) else [SUITE]
    record = ["--report", f"reports/{report}.json"]
    run(session, "python", "-m", "pytest", *where, *workers, *record, *options, *session.posargs, env=env)


@nox.session
def conformance(session: nox.Session) -> None:
    """The main job: every backend on every device of this machine; CUDA is emulated if there is none."""
    judge(session, "conformance")


@nox.session
@nox.parametrize("dtype", DTYPES, ids=DTYPES)
def cpu(session: nox.Session, dtype: str) -> None:
    """Every backend that runs on the CPU; a session for each dtype."""
    judge(session, f"cpu-{dtype}", "--device", "cpu", "--dtype", dtype)


@nox.session
@nox.parametrize("dtype", DTYPES, ids=DTYPES)
def emulated(session: nox.Session, dtype: str) -> None:
    """The CUDA sources, compiled by the host compiler and run thread by thread on the CPU; a session for each dtype."""
    judge(session, f"emulated-{dtype}", "--device", "cuda-emulated", "--dtype", dtype)


@nox.session
@nox.parametrize("dtype", DTYPES, ids=DTYPES)
def interpreted(session: nox.Session, dtype: str) -> None:
    """The Triton kernels, run by Triton's interpreter on the CPU; a session for each dtype. It installs Triton."""
    judge(session, f"interpreted-{dtype}", "--device", "triton-interpreted", "--dtype", dtype, env=with_triton(session))


def with_triton(session: nox.Session) -> dict[str, str] | None:
    """Variables with which Python finds Triton: a folder of its own, since the other sessions do without."""
    if session.venv_backend == "none":
        return None
    python, folder = prepare(session), Path(".nox/triton").resolve()
    if not (folder / "triton").exists():
        session.log("installing triton, 200 MB")
        pip = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "-c", "constraints.txt"]
        session.run(*pip, "--target", str(folder), "triton", external=True)
    return {"PYTHONPATH": str(folder)}


@nox.session
@nox.parametrize("dtype", DTYPES, ids=DTYPES)
def gpu(session: nox.Session, dtype: str) -> None:
    """Every backend that runs on CUDA; a session for each dtype. Fails without a CUDA device."""
    if not has_cuda(session):
        session.error("no CUDA device that torch can use on this machine; `nox -s emulated` runs the same sources")
    judge(session, f"gpu-{dtype}", "--device", "cuda", "--dtype", dtype)


@nox.session
@nox.parametrize("package", list(PACKAGES), ids=list(PACKAGES))
def packages(session: nox.Session, package: str) -> None:
    """A published package as a backend, on CUDA: docs/packages.md. With --no-venv the one that is installed."""
    if not has_cuda(session):
        session.error("no CUDA device that torch can use on this machine, and these packages run on no other")
    where = ["--backend", package, "--device", "cuda"]
    judge(session, f"packages-{package}", *where, env=with_package(session, package))


def with_package(session: nox.Session, package: str) -> dict[str, str] | None:
    """Variables with which Python finds a package and what it needs: a folder of its own, as for Triton."""
    if session.venv_backend == "none":
        return None
    python, folder = prepare(session), Path(f".nox/packages/{package}").resolve()
    done = folder / "installed"
    if not done.exists():
        session.log(f"installing {package}")
        pip = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "-c", "constraints.txt"]
        session.run(*pip, "--no-deps", "--target", str(folder), *PACKAGES[package], external=True)
        done.touch()
    # A .pth file, which adds the second folder, is not read on PYTHONPATH.
    return {"PYTHONPATH": os.pathsep.join((str(folder), str(folder / "nvidia_cutlass_dsl" / "dsl_packages")))}


def has_cuda(session: nox.Session) -> bool:
    """Whether torch can use a CUDA device on this machine."""
    question = "import torch; print(torch.cuda.is_available())"
    return "True" in str(session.run(prepare(session), "-c", question, silent=True, external=True))


@nox.session
@nox.parametrize("dtype", DTYPES, ids=DTYPES)
@nox.parametrize("device", ["cpu", "cuda"], ids=["cpu", "cuda"])
def benchmark(session: nox.Session, device: str, dtype: str) -> None:
    """The pytest-benchmark suite over all backends; accepts its options, such as `-- --benchmark-autosave`."""
    if device == "cuda" and not has_cuda(session):
        session.skip("no CUDA device that torch can use on this machine")
    place = ["--device", device, "--dtype", dtype]
    run(session, "python", "-m", "pytest", "tests/benchmarks", "-q", "--no-header", *place, *session.posargs)


def tests_of(*properties: str) -> list[str]:
    """The conformance tests of these properties."""
    return [f"{SUITE}/test_properties.py::test_{name}" for name in properties]


@nox.session
def gradcheck(session: nox.Session) -> None:
    """Only first and second derivatives, with their report."""
    judge(session, "gradcheck", *tests_of("gradcheck", "double_backward"))


@nox.session
def parity(session: nox.Session) -> None:
    """Only outputs and gradients against the reference, with their report."""
    judge(session, "parity", *tests_of("forward_parity", "vjp_parity"))


@nox.session
@nox.parametrize("where", ["cpu", "threads", "cuda"], ids=["cpu", "threads", "cuda"])
def sanitize(session: nox.Session, where: str) -> None:
    """cpu: C++ and emulated CUDA under ASan and UBSan; threads: under TSan; cuda: the kernels, compute-sanitizer."""
    if where == "cuda":
        run(session, "python", "-m", "harness", "compute-sanitizer", *session.posargs)
        return
    if where == "threads":
        run(session, "python", "-m", "pytest", "tests/meta/test_thread_sanitizer.py", *session.posargs)
        return
    judged = ["aten-cpp", "cpu-fused", "cuda-raw-pointer", "cuda-accessor", "cuda-fused"]
    options = [part for name in judged for part in ("--backend", name)]
    judge(session, "sanitize", "--sanitize", "--device", "cpu", "--device", "cuda-emulated", *options, env=_sanitized())


def _sanitized() -> dict[str, str]:
    """The environment of a process that loads libraries built with AddressSanitizer and UBSan."""
    compiler = os.environ.get("CXX", "g++")
    # libstdc++ too: the sanitizer looks for its exception functions before Python has loaded it.
    names = ("libasan.so", "libstdc++.so.6")
    asked = [[compiler, f"-print-file-name={name}"] for name in names]
    found = [subprocess.run(call, capture_output=True, text=True, check=True).stdout.strip() for call in asked]
    return {
        "LD_PRELOAD": " ".join(found),
        # Python frees little at exit, and torch reserves gigabytes of address space: the backends cannot change that.
        "ASAN_OPTIONS": "detect_leaks=0:allocator_may_return_null=1",
        "UBSAN_OPTIONS": "print_stacktrace=1",
    }


@nox.session
def reached(session: nox.Session) -> None:
    """Lines and branches of the C++ and emulated CUDA sources that no call reaches; `-- --backend aten-cpp`."""
    run(session, "python", "-m", "harness", "reached", *session.posargs)


@nox.session
def fuzz(session: nox.Session) -> None:
    """Ten minutes of hostile calls of the compiled backends; options: `-- --seconds 60`, `-- --sanitize` for ASan."""
    env = _sanitized() if "--sanitize" in session.posargs else None
    run(session, "python", "-m", "harness", "fuzz", "--folder", "reports/fuzz", *session.posargs, env=env)


@nox.session
def bench(session: nox.Session) -> None:
    """Times of all backends in one run, each checked before and after; prints the tutorial's table first."""
    run(session, "python", "-m", "harness", "bench", *session.posargs)


@nox.session
def gate(session: nox.Session) -> None:
    """Whether this tree is slower than another commit: `-- --base REV`, by default the previous; see docs/gate.md."""
    asked = any(option.split("=")[0] in ("--base", "--baseline", "--show") for option in session.posargs)
    run(session, "python", "-m", "harness", "gate", *([] if asked else ["--base", "HEAD~1"]), *session.posargs)


@nox.session(name="gate-study")
def gate_study(session: nox.Session) -> None:
    """Measure false alarms and power of the gate and of other judges, draw docs/gate.md; needs a quiet machine."""
    record = "results/cpu/gate-study.json"
    run(session, "python", "-m", "tools.study.gate", "-o", record, *session.posargs)
    run(session, "python", "-m", "tools.study.gate", "--draw", record)


@nox.session
def wheel(session: nox.Session) -> None:
    """Build a wheel with the compiled backends into dist/, for the torch that is installed here."""
    shutil.rmtree("build", ignore_errors=True)  # setuptools would pack files of an earlier build
    options = ["--no-build-isolation", "--no-deps", "--wheel-dir", "dist", *session.posargs]
    run(session, "python", "-m", "pip", "wheel", "-v", *options, ".", env={"LLTM_CONFORMANCE_PREBUILD": "all"})


@nox.session(name="compile-cuda")
def compile_cuda(session: nox.Session) -> None:
    """Compile the CUDA sources with nvcc for sm_80, 89, 90, 100 and 120, or `-- 89 120`; needs nvcc, but no GPU."""
    run(session, "python", "-m", "harness", "compile-cuda", *session.posargs)


@nox.session(name="compile-rocm")
def compile_rocm(session: nox.Session) -> None:
    """Translate the CUDA sources with hipify and compile them with hipcc; needs hipcc, but no AMD GPU."""
    run(session, "python", "-m", "harness", "compile-rocm", *session.posargs)


@nox.session
def report(session: nox.Session) -> None:
    """Draw the reports of earlier runs, merged into one, as reports/report.html, .md and .xml, and as a table.

    With reports/bench.json, which a bench writes, the page has speed too.
    """
    written = sorted(Path("reports").glob("*.json"))  # bench and mutation records are there too
    files = session.posargs or [str(path) for path in written if "cells" in json.loads(path.read_text())]
    bench = Path("reports/bench.json")
    speed = ["--bench", str(bench)] if bench.exists() else []
    for drawing, ending, more in (("html", "html", speed), ("markdown", "md", []), ("junit", "xml", [])):
        run(session, "python", "-m", "harness", drawing, *files, *more, "-o", f"reports/report.{ending}")
    run(session, "python", "-m", "harness", "show", *files)  # last: it exits with 1 if a cell failed


@nox.session
def scoreboard(session: nox.Session) -> None:
    """Draw docs/scoreboard from all records in results/: operator x implementation x level, errors and speed."""
    run(session, "python", "-m", "tools.scoreboard", *session.posargs)


@nox.session
def docs(session: nox.Session) -> None:
    """Build the site of docs/ into site/, without a network; a dead link fails. `-- serve` shows it while you write."""
    quiet = {"NO_MKDOCS_2_WARNING": "1"}  # hides an advertisement that mkdocs-material prints at every build
    run(session, "python", "-m", "mkdocs", *(session.posargs or ["build"]), env=quiet)


@nox.session
def tests(session: nox.Session) -> None:
    """The project's own tests, of the contracts and of the harness; `-- --all` runs the long ones too."""
    # Many tests wait for a process that they started: three workers keep two cores busy.
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    workers = ["-n", str((3 * cores + 1) // 2), "--dist", "loadgroup", "-q", "--no-header", "-r", "fE"]
    where = [] if any(option.startswith("tests/") for option in session.posargs) else ["tests/spec", "tests/meta"]
    run(session, "python", "-m", "pytest", *where, *workers, *session.posargs)


@nox.session
def controls(session: nox.Session) -> None:
    """Every control of tests/zoo (right implementations) in every dtype; `nox -s tests -- --all` judges each in one."""
    judge(session, "controls", "tests/meta/test_faults.py", "-m", "crossing or not crossing", "-k", "control")


@nox.session
def mutation(session: nox.Session) -> None:
    """Change one token of a shipped backend at a time and check that the suite notices; `-- --all` for all mutants."""
    # It forks, after which CUDA and thread pools do not work; on a GPU other processes judge.
    env = {} if "--on-gpu" in session.posargs else {"CUDA_VISIBLE_DEVICES": "", "OMP_NUM_THREADS": "1"}
    run(session, "python", "-m", "tools.mutation", *session.posargs, env=env)


@nox.session(name="method-study")
def method_study(session: nox.Session) -> None:
    """Measure false alarms and detections of ten judges, then redraw docs/method.md; 20 minutes of one core."""
    record = "results/cpu/method.json"
    run(session, "python", "-m", "tools.study.method", "-o", record, *session.posargs)
    run(session, "python", "-m", "tools.study.method", "--draw", record)
    run(session, "python", "-m", "tools.study.plot", record)


@nox.session
def museum(session: nox.Session) -> None:
    """Releases on PyPI with a known defect: each must be caught, and the repaired one pass; `-- --package timm`.

    It installs Triton, whose interpreter runs the kernels among them.
    """
    run(session, "python", "-m", "museum", *session.posargs, env=with_triton(session))


@nox.session
def soak(session: nox.Session) -> None:
    """Right implementations on drawn scenarios, to find false alarms; options: `-- --minutes 30 --workers 2`.

    It goes on with reports/soak.json, or with the file that `--state` names, until Ctrl-C.
    """
    run(session, "python", "-m", "tools.soak", *session.posargs)


@nox.session
def lint(session: nox.Session) -> None:
    """ruff, clang-format and the import rules."""
    run(session, "ruff", "check", ".")
    run(session, "ruff", "format", "--check", ".")
    sources = [str(path) for pattern in ("*.cpp", "*.cu", "*.h") for path in sorted(Path("backends").rglob(pattern))]
    run(session, "clang-format", "--dry-run", "--Werror", *sources)
    run(session, "lint-imports")


@nox.session
def typing(session: nox.Session) -> None:
    """mypy --strict on spec, harness, backends, modules, museum and tools."""
    run(session, "mypy")
