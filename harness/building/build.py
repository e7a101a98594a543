"""Compile the sources that a backend declares, once for each content, and load the result.

A library that was built ahead of time is part of the package (`harness.building.ahead`) and is used as it is. Any other
build has the folder `<cache>/<namespace>-<operator>-<device>-<key>/`. The key is a digest of everything that the result
depends on: sources, headers, flags, torch, compiler. So after a torch upgrade or an edit of a header the folder is
another one, and no library is stale. Builders of the same key wait for each other on a file lock, which the kernel
releases when its holder dies. A library gets its name by an atomic rename, so a half-written one is never loaded. A
digest of the library and of its key is beside it: a library that was damaged, or comes from another folder, is built
again. Ninja compiles the sources of one build in parallel.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import platform
import re
import shlex
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import torch
from filelock import FileLock, Timeout

from backends.base import (
    CPU,
    CUDA,
    CUDA_EMULATED,
    CompiledOperator,
    Implementation,
    MissingDependency,
    PythonFunction,
)
from harness.building import ahead
from harness.building.cache import cache_root
from harness.building.usage import usage_of
from harness.errors import Broken, CannotBuild, Unavailable

#: Seconds that one build may take, and that a second builder waits for the first.
TIMEOUT = 600.0
_TORCH = Path(torch.__file__).parent
_STANDARD = "-std=c++20"
#: Flags of the host compiler for every source, before a backend's own flags.
HOST_FLAGS = (_STANDARD, "-fPIC", "-fvisibility=hidden")
HEADERS = frozenset({".h", ".hpp", ".cuh", ".inl", ".inc"})
#: What compilers and ninja print if the machine, and not the source, is the reason of a failure.
_DISK_IS_FULL = re.compile(r"No space left on device|Disk quota exceeded")
_WAS_KILLED = re.compile(
    r"Killed signal|error: Killed|command: Killed|^Killed$|died due to signal 9|\[code=1(37|43)\]", re.MULTILINE
)
_NO_MEMORY = re.compile(r"virtual memory exhausted|Cannot allocate memory|out of memory allocating")
SANITIZERS = ("-fsanitize=address,undefined", "-fno-sanitize-recover=undefined", "-g", "-fno-omit-frame-pointer")


@cache
def host_compiler() -> str:
    """Path of the C++ compiler: `$CXX`, else g++, else clang++. Raises Unavailable."""
    wanted = os.environ.get("CXX")
    for name in (wanted,) if wanted else ("g++", "clang++"):
        found = shutil.which(name)
        if found:
            return found
    raise Unavailable(f"no C++ compiler: {wanted or 'g++'} is not on PATH; install g++ or set CXX")


@cache
def cuda_home() -> Path:
    """The CUDA toolkit: `$CUDA_HOME`, else where nvcc is, else /usr/local/cuda. Raises Unavailable."""
    nvcc = shutil.which("nvcc")
    for root in (os.environ.get("CUDA_HOME"), nvcc and Path(nvcc).resolve().parents[1], "/usr/local/cuda"):
        if root and (Path(root) / "bin" / "nvcc").exists():
            return Path(root)
    raise Unavailable("no CUDA compiler: nvcc is not on PATH; install the CUDA toolkit or set CUDA_HOME")


@cache
def _cxx_runtime() -> tuple[str, ...]:
    """The C++ standard library that torch has loaded, to be linked before the compiler's own.

    A compiler outside the system's folders may bring a static one. Two in one process do not share a locale, and the
    process would crash when torch first prints a number into a stream of our library.
    """
    maps = Path("/proc/self/maps")
    lines = maps.read_text().splitlines() if maps.exists() else []
    return tuple(sorted({line.split()[-1] for line in lines if "libstdc++.so" in line}))[:1]


@cache
def compiler_version(compiler: str) -> str:
    """The version that the compiler prints. Raises Unavailable if it does not run."""
    try:
        return subprocess.run([compiler, "--version"], capture_output=True, text=True, check=True, timeout=60).stdout
    except (OSError, subprocess.SubprocessError) as error:
        raise Unavailable(f"the compiler {compiler} does not run: {error}") from error


def _ninja() -> str:
    with contextlib.suppress(ImportError):
        import ninja

        return str(Path(ninja.BIN_DIR) / "ninja")
    found = shutil.which("ninja")
    if found is None:
        raise Unavailable("ninja is missing; pip install ninja")
    return found


@dataclass(frozen=True)
class _Step:
    """One compiler call: `output` from `source`."""

    source: Path
    output: str
    command: tuple[str, ...]


@dataclass(frozen=True)
class Build:
    """The compiler calls that make one library, and the digest of all they depend on."""

    name: str
    key: str
    steps: tuple[_Step, ...]
    link: tuple[str, ...]

    @property
    def folder(self) -> Path:
        return cache_root() / f"{self.name}-{self.key}"

    @property
    def library(self) -> Path:
        return self.folder / f"{self.name}.so"

    @property
    def digest(self) -> Path:
        """The file with the digest of the library."""
        return self.folder / f"{self.name}.blake2b"

    @property
    def is_there(self) -> bool:
        """Whether the library is there, undamaged, and was built for this key: 0.1 s for 20 MB."""
        try:
            return self.digest.read_text(errors="replace") == self.digest_of(self.library)
        except OSError:
            return False

    def digest_of(self, library: Path) -> str:
        """The digest of a library under this key: that of another build's library differs, whatever it holds."""
        with library.open("rb") as file:
            return hashlib.file_digest(file, lambda: hashlib.blake2b(key=self.key.encode())).hexdigest()


def namespace(operator: CompiledOperator, device: str) -> str:
    """The torch.ops namespace that the build for `device` registers in."""
    return operator.namespace + ("_emulated" if device == CUDA_EMULATED else "")


def _includes(directories: Iterable[Path]) -> list[str]:
    torch_include = _TORCH / "include"
    own = [f"-I{directory}" for directory in directories]
    return [*own, "-isystem", str(torch_include), "-isystem", str(torch_include / "torch/csrc/api/include")]


def _uses_cuda(device: str, operator: CompiledOperator) -> bool:
    return device == CUDA and operator.has_cuda_sources


def plan(operator: CompiledOperator, device: str, extra_flags: tuple[str, ...] = ()) -> Build:
    """The plan of `build`. Raises Unavailable if a compiler is missing, Broken if a source is."""
    for source in operator.sources:
        if not source.is_file():
            raise Broken(f"{source} does not exist, but is a source of {operator.namespace}.{operator.operator}")
    compiler = host_compiler()
    cuda = cuda_home() if _uses_cuda(device, operator) else None
    defines = [f"-DOPERATOR_NAMESPACE={namespace(operator, device)}"]
    if device == CUDA_EMULATED:
        defines.append("-DCUDA_EMULATED")
    if cuda:
        defines.append("-DUSE_CUDA")
    common = [*defines, *operator.flags, *_includes(operator.include_dirs)]
    abi = f"-D_GLIBCXX_USE_CXX11_ABI={int(torch.compiled_with_cxx11_abi())}"
    host = [compiler, *HOST_FLAGS, abi, *common, *extra_flags]

    steps = []
    for number, source in enumerate(operator.sources):
        output = f"{number}-{source.name}.o"  # two folders may have a file of the same name
        if source.suffix == ".cu" and cuda:
            command = [*nvcc_command(cuda, common), *_present_architecture(), "-c", str(source), "-o", output]
        else:
            language = ["-x", "c++"] if source.suffix == ".cu" else []
            # Beside emulated kernels, which take all of the time, a faster call is of no use.
            hurried = ["-O1"] if device == CUDA_EMULATED and source.suffix != ".cu" else []
            command = [*host, *hurried, *language, "-c", str(source), "-o", output]
        steps.append(_Step(source, output, tuple(command)))

    libraries = ["c10", "torch_cpu", "torch", *(["c10_cuda", "torch_cuda"] if cuda else [])]
    link = [compiler, "-shared", *extra_flags, f"-L{_TORCH / 'lib'}", f"-Wl,-rpath,{_TORCH / 'lib'}"]
    link += [f"-l{library}" for library in libraries]
    link += _cxx_runtime()
    if cuda:
        link += [f"-L{cuda / 'lib64'}", "-lcudart"]

    compilers = [compiler, compiler_version(compiler), *([compiler_version(str(cuda / "bin/nvcc"))] if cuda else [])]
    facts = [torch.__version__, str(torch.version.git_version), platform.machine(), *compilers]
    facts += [part for step in steps for part in step.command] + link
    digest = hashlib.sha256("\0".join(facts).encode())
    for file in sorted(_files(operator)):
        digest.update(str(file).encode() + b"\0" + file.read_bytes() + b"\0")
    return Build(library_name(operator, device), digest.hexdigest()[:16], tuple(steps), tuple(link))


def library_name(operator: CompiledOperator, device: str) -> str:
    """`lltm_aten_cpp-lltm-cpu`: the name of a library without its ending."""
    return f"{namespace(operator, device)}-{operator.operator}-{device}"


def _files(operator: CompiledOperator) -> set[Path]:
    """The sources, and every header that they may include."""
    # A source finds the headers beside it without any flag.
    nearby = [file for source in operator.sources for file in source.parent.glob("*")]
    included = [file for folder in operator.include_dirs for file in folder.rglob("*")]
    headers = [file for file in (*nearby, *included) if file.suffix in HEADERS and file.is_file()]
    return {*operator.sources, *headers}


def made_from(operator: CompiledOperator, device: str) -> str:
    """The digest that identifies a library that was built ahead of time."""
    return ahead.digest(operator, device, _files(operator))


def nvcc_command(cuda: Path, common: Iterable[str]) -> list[str]:
    """nvcc with the flags of all CUDA sources of this project, except the architecture."""
    return [str(cuda / "bin/nvcc"), _STANDARD, "-Xcompiler", "-fPIC,-fvisibility=hidden", "-lineinfo", *common]


def _present_architecture() -> list[str]:
    if not torch.cuda.is_available():
        raise Unavailable(f"no CUDA device on this machine (torch {torch.__version__})")
    major, minor = torch.cuda.get_device_capability()
    return [f"-gencode=arch=compute_{major}{minor},code=sm_{major}{minor}"]


def compile_for_architectures(operator: CompiledOperator, architectures: Iterable[str]) -> list[str]:
    """Compile the `.cu` sources with nvcc for each of e.g. `("80", "90")`. No GPU is needed; nothing is kept.

    What runs on the host is checked and not compiled: the host compiler does that for emulated kernels, and it takes a
    third of the time. Returns one line for each source and architecture, with what its kernels need. Raises Unavailable
    without nvcc, Broken with the log.
    """
    cuda = cuda_home()
    lines = []
    common = [f"-DOPERATOR_NAMESPACE={operator.namespace}", "-DUSE_CUDA", *operator.flags]
    common += _includes(operator.include_dirs)
    for architecture in architectures:
        for source in (source for source in operator.sources if source.suffix == ".cu"):
            with tempfile.TemporaryDirectory() as scratch:
                target = [f"-gencode=arch=compute_{architecture},code=sm_{architecture}"]
                output = ["--cubin", str(source), "-o", f"{scratch}/out.cubin", "--resource-usage"]
                log = run_compiler([*nvcc_command(cuda, common), *target, *output], Path(scratch), source.name)
            lines.append(f"{operator.namespace}/{source.name} sm_{architecture}: {usage_of(log).in_words()}")
    return lines


def build(operator: CompiledOperator, device: str, extra_flags: tuple[str, ...] = ()) -> Path:
    """The library of `operator` for `device`: from the package, else from the cache, else compiled.

    Raises Unavailable if a compiler or device is missing, CannotBuild if the machine fails meanwhile, else Broken with
    the compiler's complete log.
    """
    if not extra_flags:
        there = ahead.find(library_name(operator, device), lambda: made_from(operator, device))
        if there is not None:
            return there
    made = plan(operator, device, extra_flags)
    if made.is_there:
        return made.library
    try:
        made.folder.mkdir(parents=True, exist_ok=True)
        with FileLock(made.folder / "lock", timeout=TIMEOUT):
            if not made.is_there:
                for left in made.folder.glob("attempt-*"):  # of a builder that was killed: this process has the lock
                    shutil.rmtree(left, ignore_errors=True)
                _compile(made)
    except Timeout:
        raise Broken(f"another builder held {made.folder / 'lock'} for {TIMEOUT:.0f} s; end it and try again") from None
    except OSError as error:
        why = f"{made.name} cannot be built, because {made.folder} cannot be written to: {error.strerror or error}"
        raise CannotBuild(f"{why}; {_elsewhere()}") from error
    return made.library


def _elsewhere() -> str:
    return f"free space in {cache_root()} or make it writable, or set LLTM_CONFORMANCE_CACHE to another folder"


def is_built(operator: CompiledOperator, device: str, extra_flags: tuple[str, ...] = ()) -> bool:
    """Whether `build` would compile nothing. Raises as `plan` does."""
    if not extra_flags and ahead.find(library_name(operator, device), lambda: made_from(operator, device)):
        return True
    return plan(operator, device, extra_flags).is_there


def _compile(made: Build) -> None:
    # A new folder for each attempt: what a killed builder left behind is never read.
    with tempfile.TemporaryDirectory(dir=made.folder, prefix="attempt-") as scratch:
        (Path(scratch) / "build.ninja").write_text(_ninja_file(made))
        log = run_compiler([_ninja(), "-v"], Path(scratch), made.name)
        (made.folder / "build.log").write_text(log)
        library, digest = Path(scratch) / made.library.name, Path(scratch) / made.digest.name
        digest.write_text(made.digest_of(library))
        os.replace(digest, made.digest)
        os.replace(library, made.library)


def _ninja_file(made: Build) -> str:
    def quoted(command: Iterable[str]) -> str:
        return shlex.join(command).replace("$", "$$")

    def path(text: object) -> str:
        return str(text).replace("$", "$$").replace(" ", "$ ").replace(":", "$:")

    lines = ["ninja_required_version = 1.5"]
    for number, step in enumerate(made.steps):
        lines += [f"rule compile{number}", f"  command = {quoted(step.command)}"]
        lines += [f"build {path(step.output)}: compile{number} {path(step.source)}"]
    objects = [step.output for step in made.steps]
    link = [*made.link[:2], "-o", made.library.name, *objects, *made.link[2:]]
    lines += ["rule link", f"  command = {quoted(link)}"]
    lines += [f"build {path(made.library.name)}: link {' '.join(path(name) for name in objects)}", ""]
    return "\n".join(lines)


def run_compiler(command: list[str], folder: Path, what: str) -> str:
    """Run a compiler in a process session of its own, so that a timeout ends its children too; its output.

    Raises CannotBuild if the machine is the reason of a failure, else Broken.
    """
    process = subprocess.Popen(
        command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, start_new_session=True
    )
    try:
        log, _ = process.communicate(timeout=TIMEOUT)
    except subprocess.TimeoutExpired:
        log = _end(process)
        raise Broken(f"{what} was still compiling after {TIMEOUT:.0f} s and was ended:\n{log}") from None
    except BaseException:
        _end(process)
        raise
    if process.returncode != 0:
        if process.returncode in (-signal.SIGKILL, -signal.SIGTERM) or _WAS_KILLED.search(log):
            advice = "the kernel kills it if memory runs out: free memory, or judge with fewer workers (-n 1)"
            raise CannotBuild(f"{what} cannot be built: the compiler was killed; {advice}\n{log}")
        if _NO_MEMORY.search(log):
            advice = "free memory, or judge with fewer workers (-n 1)"
            raise CannotBuild(f"{what} cannot be built: the compiler had no memory left; {advice}\n{log}")
        if _DISK_IS_FULL.search(log):
            places = f"{folder} or {tempfile.gettempdir()}"
            raise CannotBuild(f"{what} cannot be built: the disk of {places} is full; {_elsewhere()}\n{log}")
        raise Broken(f"{what} does not build (exit {process.returncode}):\n{log}")
    return log


def _end(process: subprocess.Popen[str]) -> str:
    """End ninja and what it started; the output until then.

    Each command of ninja's has a process group of its own. Ninja ends them on SIGTERM, but cannot if it is killed.
    """
    for ending in (signal.SIGTERM, signal.SIGKILL):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, ending)
        with contextlib.suppress(subprocess.TimeoutExpired):
            return process.communicate(timeout=10)[0]
    return ""


_loaded: dict[tuple[CompiledOperator, str, tuple[str, ...]], Callable[..., Any] | Exception] = {}


def load(implementation: Implementation, device: str, extra_flags: tuple[str, ...] = ()) -> Callable[..., Any]:
    """The callable of an implementation on `device`, built and loaded once in a process.

    Raises Unavailable or Broken, the same on every call: a compiler that failed is not called again.
    """
    if isinstance(implementation, PythonFunction):
        return implementation.function
    if isinstance(implementation, MissingDependency):
        raise Unavailable(f"{implementation.package} is not installed: pip install {implementation.package}")
    if not implementation.has_cuda_sources:
        device = CPU  # one library serves every device: its kernels are ATen's
    slot = (implementation, device, extra_flags)
    if slot not in _loaded:
        try:
            _loaded[slot] = _load(implementation, device, extra_flags)
        except (Unavailable, Broken) as error:
            _loaded[slot] = error
    outcome = _loaded[slot]
    if isinstance(outcome, Exception):
        raise outcome
    return outcome


def _load(operator: CompiledOperator, device: str, extra_flags: tuple[str, ...]) -> Callable[..., Any]:
    library = build(operator, device, extra_flags)
    try:
        torch.ops.load_library(str(library))  # type: ignore[no-untyped-call]
    except (OSError, RuntimeError) as error:
        # torch only says that it could not load; the cause is the message of the dynamic linker.
        raise Broken(f"{library.name} was built but does not load: {error.__cause__ or error}") from error
    try:
        return registered(operator, device)
    except AttributeError:
        raise Broken(
            f"{library.name} registers no torch.ops.{namespace(operator, device)}.{operator.operator}; "
            "its sources should register it by TORCH_LIBRARY_FRAGMENT(OPERATOR_NAMESPACE, m)"
        ) from None


def registered(operator: CompiledOperator, device: str) -> Callable[..., Any]:
    """The operator of a library that is loaded, as its users call it. Raises AttributeError if there is none."""
    ops = getattr(torch.ops, namespace(operator, device))
    function: Callable[..., Any] = getattr(ops, operator.operator).default
    return function if operator.under_transforms is None else _chosen(function, operator.under_transforms(ops))


def _chosen(function: Callable[..., Any], under_transforms: Callable[..., Any]) -> Callable[..., Any]:
    """One or the other, depending on whether a transform of torch.func is active: half a microsecond a call."""
    is_active = torch._C._are_functorch_transforms_active

    def call(*arguments: Any, **named: Any) -> Any:
        return under_transforms(*arguments, **named) if is_active() else function(*arguments, **named)

    return call
