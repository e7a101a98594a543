"""The options that say what to judge, and the subjects that they select."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

import torch

from backends.base import (
    CPU,
    CUDA,
    CUDA_EMULATED,
    DEVICES,
    TRITON_INTERPRETED,
    CompiledOperator,
    Declaration,
    declaration_of,
)
from harness import discovery
from harness.building import build
from harness.candidate import Candidate, candidate
from harness.discovery import FoundBackend
from harness.errors import Absent, Broken, CannotBuild, HarnessError, Unavailable, UnknownName, UsageError
from harness.judging.contract_check import admit
from harness.judging.judge import judge
from harness.judging.property import Property
from harness.judging.subject import USUAL, Examples, Subject
from harness.properties import all_properties
from harness.report.cell import DECLARED, FAIL, NO_EVIDENCE, NOT_RUN, Cell
from harness.report.levels import PRODUCTION, SAFE
from harness.report.shards import UNDIVIDED, Shard
from harness.running.candidate_files import file_of
from spec.contract import DTYPES, Operator

DTYPE_NAMES = {str(dtype).removeprefix("torch."): dtype for dtype in DTYPES}


@dataclass(frozen=True)
class Selection:
    """The user's options. Empty means all; for devices, all that make sense on this machine."""

    operators: tuple[str, ...] = ()
    backends: tuple[str, ...] = ()
    devices: tuple[str, ...] = ()
    dtypes: tuple[str, ...] = ()
    candidates: tuple[str, ...] = ()
    backend_paths: tuple[Path, ...] = ()
    spec_paths: tuple[Path, ...] = ()
    sanitize: bool = False
    examples: Examples = USUAL
    #: The shard that makes its part of the calls of a divisible property; all of them without `--divide`.
    share: Shard = UNDIVIDED

    @property
    def is_default(self) -> bool:
        """Whether no option narrows the selection; the number of drawn calls does not count, nor does the share."""
        return replace(self, examples=USUAL, share=UNDIVIDED) == Selection()

    @property
    def usual_level(self) -> str:
        """The last level that is required by default: `safe` for candidates alone, all for backends."""
        return SAFE if self.candidates and not self.backends else PRODUCTION


@dataclass(frozen=True)
class Slot:
    """One place of the table: an implementation of an operator on a device in a dtype."""

    operator: Operator
    backend: str
    device: str
    dtype: torch.dtype
    source: FoundBackend | Candidate
    sanitize: bool = False
    #: Whether the backend was named on the command line.
    named: bool = True
    examples: Examples = USUAL
    share: Shard = UNDIVIDED

    @property
    def id(self) -> str:
        """`lltm-aten-cpp-cpu-float32`, as pytest shows it."""
        return f"{self.operator.name}-{self.backend}-{self.device}-{str(self.dtype).removeprefix('torch.')}"

    def is_asked(self, property: Property) -> bool:
        """Whether this place has a cell of that property."""
        sanitize = self.sanitize and isinstance(self.source, Candidate)
        return property.is_asked(self.device, str(self.dtype).removeprefix("torch."), sanitize)

    def compiled(self) -> CompiledOperator | None:
        """What has to be built before this place can be judged; None where nothing has, or where it cannot be read."""
        if not isinstance(self.source, FoundBackend) or self.source.backend.needs:
            return None  # what is in a package is not compiled here, and is imported where it is judged
        try:
            found = self.source.implementation(self.operator.name)
        except HarnessError:
            return None  # its cells say so
        return found if isinstance(found, CompiledOperator) else None

    def require_device(self) -> None:
        """Raise Unavailable if this machine lacks the device."""
        discovery.require_device(self.device)

    def subject(self) -> Subject:
        """Load the implementation. Raises Absent, Unavailable, Broken."""
        declared: tuple[Declaration, ...]
        lacks: dict[str, str] = {}
        if isinstance(self.source, Candidate):
            discovery.require_device_of_caller(self.device)
            function, found = discovery.load_candidate(self.source)
            source, declared = self.source.text, declarations(found)
        else:
            why = self.source.backend.absent.get(self.operator.name)
            if why is not None and self.source.implementation(self.operator.name) is None:
                raise Absent(why)
            missing = self.source.missing()
            if missing:
                raise Unavailable(f"{missing} is not installed: pip install {missing}")
            if self.device not in self.source.backend.devices:
                raise Unavailable(f"{self.backend} runs on {', '.join(self.source.backend.devices)}")
            discovery.require_device(self.device)
            why = self.source.backend.on_request
            if why and not self.named:
                raise Unavailable(f"{self.backend} is judged where it is named, by --backend {self.backend}: {why}")
            implementation = self.source.implementation(self.operator.name)
            if implementation is None:
                raise Unavailable(f"{self.backend} does not implement {self.operator.name}")
            function = build.load(implementation, self.device, build.SANITIZERS if self.sanitize else ())
            declared, source = self.source.backend.declared, ""
            without = self.source.backend.lacks.get(self.operator.name, {})
            lacks = {f"{self.operator.name}[{form}]": reason for form, reason in without.items()}
        return Subject(
            self.operator,
            self.backend,
            self.device,
            self.dtype,
            function,
            declared,
            source,
            examples=self.examples,
            files=self.files(),
            lacks=lacks,
            share=self.share,
        )

    def files(self) -> tuple[Path, ...]:
        """Files of the source of what is judged here; those of other operators of a backend are not among them."""
        if isinstance(self.source, Candidate):
            return (file_of(self.source.where),)
        others = set(discovery.operators()) - {self.operator.name}
        return tuple(path for path in self.source.files() if path.stem not in others)

    def cell(self, property: str, verdict: str, reason: str, seconds: float = 0.0) -> Cell:
        """A cell of this slot that was not judged."""
        dtype = str(self.dtype).removeprefix("torch.")
        names = (self.operator.name, self.backend, self.device, dtype)
        return Cell(*names, property, verdict, reason, seconds=round(seconds, 4))

    def ended(self, property: str, how: str, seconds: float, call: str = "") -> Cell:
        """The cell of an implementation that cost its process or its device; `declared` if the backend declares it.

        `how` says what the process did, as a predicate; `call` is the call that was made last, if that is known.
        """
        reason = f"the process {how} while {property} was judged, but should return{f' [{call}]' if call else ''}"
        declared = self.source.backend.declared if isinstance(self.source, FoundBackend) else ()
        declaration = declaration_of(declared, property, self.operator.name, self.device, self.dtype)
        if declaration is None:
            return self.cell(property, FAIL, reason, seconds)
        return replace(self.cell(property, DECLARED, declaration.reason, seconds), figures={"seen": reason})

    def judge(self, property: Property) -> Cell:
        """Load the implementation and judge it.

        `declared` if the backend declares that it lacks the operator, `not-run` if this machine cannot run it, `fail`
        if it is broken, `no-evidence` if the machine failed while it was built.
        """
        try:
            subject = self.subject()
        except Absent as why:
            return self.cell(property.name, DECLARED, str(why))
        except CannotBuild as error:
            return self.cell(property.name, NO_EVIDENCE, str(error))
        except Unavailable as error:
            return self.cell(property.name, NOT_RUN, str(error))
        except Broken as error:
            return self.cell(property.name, FAIL, str(error))
        return judge(subject, property)


def declarations(declared: Mapping[str, str]) -> tuple[Declaration, ...]:
    """What the module of a candidate declares, for every device and dtype. Raises UnknownName."""
    _known("property in DECLARED", list(declared), all_properties())
    return tuple(Declaration(name, reason) for name, reason in declared.items())


def slots(selection: Selection) -> list[Slot]:
    """Every slot of the selection. Raises UnknownName for an unknown name."""
    operators = discovery.operators(selection.spec_paths)
    _known("operator", selection.operators, operators)
    asked = {candidate.partition("=")[0] for candidate in selection.candidates}
    for name in selection.operators or (asked if asked and not selection.backends else operators):
        if name in operators:  # for a candidate there is a more specific error below
            admit(operators[name])
    _known("device", selection.devices, DEVICES)
    _known("dtype", selection.dtypes, DTYPE_NAMES)
    dtypes = [DTYPE_NAMES[name] for name in selection.dtypes or DTYPE_NAMES]
    found: dict[str, Slot] = {}
    for slot in _slots(selection, operators, dtypes):
        # Two options may select the same slot twice, but two different functions must not share one.
        if found.setdefault(slot.id, slot).source != slot.source:
            raise UsageError(f"two candidates are called {slot.backend!r}: rename one, their cells would be mixed up")
    return list(found.values())


def not_installed(selection: Selection) -> dict[str, str]:
    """What pip would install for each backend that is left out because its package is missing; none if it is named."""
    if selection.backends or selection.candidates:
        return {}
    found = {name: each.missing() for name, each in discovery.all_backends(selection.backend_paths).items()}
    return {name: what for name, what in found.items() if what}


def of_packages(names: Sequence[str], paths: tuple[Path, ...] = ()) -> list[str]:
    """Which of these backends, of all without names, are published packages that are installed here."""
    found = discovery.all_backends(paths).items()
    return [name for name, each in found if each.backend.needs and not each.missing() and (not names or name in names)]


def to_build(places: Sequence[Slot]) -> list[str]:
    """`aten-cpp/lltm` of every library that these places need and that is not there yet."""
    missing: dict[str, None] = {}
    for slot in places:
        compiled = slot.compiled()
        if compiled is None:
            continue
        device = slot.device if compiled.has_cuda_sources else CPU
        with suppress(HarnessError):  # no compiler, or no such device: the cells say so
            if not build.is_built(compiled, device, build.SANITIZERS if slot.sanitize else ()):
                missing[f"{slot.backend}/{slot.operator.name}"] = None
    return list(missing)


def _slots(selection: Selection, operators: dict[str, Operator], dtypes: Sequence[torch.dtype]) -> Iterator[Slot]:
    for text in selection.candidates:
        found = candidate(text)
        _known("operator", [found.operator], operators)
        _refuse_name_of_backend(found)
        for device in selection.devices or (CUDA if torch.cuda.is_available() else CPU,):
            if device == CUDA_EMULATED:
                raise UsageError(
                    f"--device was {device!r}, but should be another for the candidate {found.name}: CUDA is emulated "
                    "for backends alone, whose sources the suite compiles itself"
                )
            for dtype in dtypes:
                place = (operators[found.operator], found.name, device, dtype, found)
                if dtype in operators[found.operator].dtypes:
                    yield Slot(*place, sanitize=selection.sanitize, examples=selection.examples, share=selection.share)
    if selection.candidates and not selection.backends:
        return
    backends = discovery.all_backends(selection.backend_paths)
    for name, backend in backends.items():
        declared = [declaration.property for declaration in backend.backend.declared]
        _known(f"property in a declaration of {name}", declared, all_properties())
    _known("backend", selection.backends, backends)
    both_named = bool(selection.operators and selection.backends)
    for operator in (operators[name] for name in selection.operators or operators):
        for name in selection.backends or backends:
            if not both_named and not backends[name].speaks_of(operator.name):
                continue  # a backend has the operators that it has a file for; the others are no gap
            if not selection.backends and backends[name].missing():
                continue  # `not_installed` names it in one sentence
            for device in selection.devices or _sensible_devices(backends[name]):
                if device not in backends[name].backend.devices and selection.devices:
                    continue  # a backend that never runs on this device, such as cuda-emulated, gets no slot
                for dtype in dtypes:
                    if dtype in backends[name].backend.dtypes and dtype in operator.dtypes:
                        yield Slot(
                            backends[name].in_its_forms(operator),
                            name,
                            device,
                            dtype,
                            backends[name],
                            selection.sanitize,
                            bool(selection.backends),
                            selection.examples,
                            selection.share,
                        )


def _refuse_name_of_backend(found: Candidate) -> None:
    """A report tells candidates from backends by their names, and believes a declaration of the latter alone."""
    known: Collection[str] = ()
    with suppress(HarnessError):  # a backend that does not import is no concern of a candidate
        known = discovery.all_backends()
    if found.name in known:
        raise UsageError(f"{found.text}: there is a backend {found.name!r} already; rename the function")


def _sensible_devices(found: FoundBackend) -> tuple[str, ...]:
    """All devices of the backend that this machine has; if there is none, all of them, for cells that say `not-run`.

    Triton is interpreted only where there is no GPU: it is slow, and the GPU runs the same kernels.
    """
    absent = TRITON_INTERPRETED if torch.cuda.is_available() else CUDA
    here = tuple(device for device in found.backend.devices if device != absent)
    return here or found.backend.devices


def _known(kind: str, names: Sequence[str], known: Collection[str]) -> None:
    for name in names:
        if name not in known:
            raise UnknownName(kind, name, known)
