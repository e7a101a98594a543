"""Expected results on disk. They depend on the contract and on the call alone, so they are computed once for a user.

A run that calls no foreign code, or calls it in a sandbox that hides the store, uses it. The store has a folder for
each suite: for all files of `spec` and of the judging packages, torch, and the vector instructions of the CPU; for a
contract from outside, also for all files that were imported from outside. An entry belongs to the question, the dtype,
and the bytes and strides of every tensor of the call.

An entry is a digest, then safetensors: reading one executes nothing, and a damaged one is computed again.
"""

from __future__ import annotations

import hashlib
import json
import os
import platform
import shutil
import sys
import sysconfig
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import asdict, dataclass, field
from functools import cache, lru_cache
from importlib.metadata import distributions
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load, save
from torch import Tensor

import spec
from harness import discovery
from harness.report.atomic_write import write_bytes_atomically
from spec.contract import Operator
from spec.envelope import Block, Envelope

#: Bytes of the largest entry.
LARGEST = 2**26
#: Folders that are kept, the latest: of suites, and of contracts from outside, which are smaller and more.
SUITES, OUTSIDE = 3, 24
#: Seconds after which an unused folder is removed.
KEPT_SECONDS = 14 * 86400
_DIGEST = hashlib.blake2b().digest_size
#: A mask that holds everywhere or nowhere takes no room.
_MASKS = ("usable", "undecided")
#: Folders that hold only what an installer has put there.
_SITES = ("site-packages", "dist-packages")
#: The suite's own packages, and the folder that they are in.
_OWN = ("spec", "backends", "harness", "modules", "tools", "tests")
_ROOT = Path(__file__).parents[2]
#: The names of the module that is the command; multiprocessing gives it the second one.
_MAIN = ("__main__", "__mp_main__")


@dataclass(frozen=True)
class Results:
    """Envelopes by name, other tensors by name, and plain facts."""

    envelopes: dict[str, Envelope]
    tensors: dict[str, Tensor] = field(default_factory=dict)
    facts: dict[str, Any] = field(default_factory=dict)


#: The store's folder while it is used.
_FOLDER: ContextVar[Path | None] = ContextVar("folder", default=None)


@contextmanager
def used(folder: Path | None) -> Iterator[None]:
    """Use the store in that folder within; None: use none."""
    token = _FOLDER.set(folder)
    try:
        yield
    finally:
        _FOLDER.reset(token)


def is_used() -> bool:
    """Whether the store is used: no foreign code runs, or it is in a sandbox that hides the store."""
    return _FOLDER.get() is not None


def results(
    question: str,
    operator: Operator,
    dtype: torch.dtype,
    given: Mapping[str, Tensor | None],
    compute: Callable[[], Results],
) -> Results:
    """What `compute` returns for an operator and the tensors `given`; from the store if it is used and has it."""
    root = _FOLDER.get()
    own = None if root is None else _suite_of(operator)
    if root is None or own is None:
        return compute()
    path = _path(root, own, question, operator, dtype, given)
    found = _read(path)
    if found is None:
        found = compute()
        _write(path, found)
    return found


def has(question: str, operator: Operator, dtype: torch.dtype, given: Mapping[str, Tensor | None]) -> bool:
    """Whether the store is used and has an entry for what `results` is asked."""
    root = _FOLDER.get()
    own = None if root is None else _suite_of(operator)
    return root is not None and own is not None and _path(root, own, question, operator, dtype, given).exists()


def _path(
    root: Path, own: str, question: str, operator: Operator, dtype: torch.dtype, given: Mapping[str, Tensor | None]
) -> Path:
    return root / own / f"{_key(question, operator, dtype, given)}.expected"


def _key(question: str, operator: Operator, dtype: torch.dtype, given: Mapping[str, Tensor | None]) -> str:
    there = {name: tensor.detach().cpu() for name, tensor in given.items() if tensor is not None}
    about = [question, operator.title, str(dtype), *((name, tensor.stride()) for name, tensor in there.items())]
    values = {name: _copy(tensor) for name, tensor in there.items()}
    return hashlib.blake2b(repr(about).encode() + save(values), digest_size=16).hexdigest()


# Whose results they are


def _suite_of(operator: Operator) -> str | None:
    """The name of the folder for this contract; None if it is not known what its results depend on."""
    origin = discovery.origin(operator)
    if origin is None:  # made, or changed, by a program
        return None
    return _suite() if origin.startswith("spec.") else f"{_suite()}-{_outside()}"


@cache
def _suite() -> str:
    parts = (torch.__version__, platform.machine(), torch.backends.cpu.get_cpu_capability(), *sys.version_info[:2])
    digest = hashlib.blake2b(" ".join(map(str, parts)).encode(), digest_size=8)
    roots = Path(str(spec.__file__)).parent, Path(__file__).parents[1]
    for file in sorted([*roots[0].rglob("*.py"), *roots[1].glob("judging/*.py"), *roots[1].glob("properties/*.py")]):
        digest.update(file.name.encode() + b"\0" + file.read_bytes())
    return digest.hexdigest()


def _outside() -> str:
    """A digest of all that a contract from outside may depend on: the files imported from outside, and packages."""
    digest = hashlib.blake2b(_packages().encode(), digest_size=8)
    for name, file in _outside_among(tuple(sys.modules)):
        facts = file.stat()
        digest.update(name.encode() + b"\0" + _digest(file, facts.st_mtime_ns, facts.st_size))
    return digest.hexdigest()


@lru_cache(maxsize=4096)
def _digest(file: Path, _time: int, _size: int) -> bytes:
    """The digest of a file. Kept while its time and size are the same: this is asked before each call."""
    return hashlib.blake2b(file.read_bytes(), digest_size=16).digest()


def prepare() -> None:
    """Find out now what does not change while this process lives: its forks know it then."""
    _suite()
    _outside()


@lru_cache(maxsize=1)
def _outside_among(_: tuple[str, ...]) -> list[tuple[str, Path]]:
    """The files from outside. Kept while the same modules are imported: to look at all takes longer than an oracle."""
    return sorted(_files_from_outside())


@cache
def _packages() -> str:
    """The names of the folders of facts about packages, such as torch-2.13.0.dist-info: to read them takes longer."""
    found = set()
    for folder in map(Path, sys.path):
        with suppress(OSError):
            found |= {each.name for each in folder.iterdir() if each.suffix in (".dist-info", ".egg-info")}
    return " ".join(sorted(found))


@cache
def _installed() -> tuple[str, ...]:
    """The folders of the standard library and of installed packages: an environment may lie on top of another one.

    A package that is developed in place is found in its checkout, where files change and the version does not.
    """
    folders = set(sysconfig.get_paths().values())
    for each in distributions():
        folder = str(each.locate_file(""))
        if folder not in folders and (folder.endswith(_SITES) or each.read_text("INSTALLER")):
            folders.add(folder)
    return tuple(f"{Path(folder)}{os.sep}" for folder in folders)


def _files_from_outside() -> Iterator[tuple[str, Path]]:
    """Modules that come neither from an installed package nor from the suite, which have versions or digests."""
    for name, module in list(sys.modules.items()):
        file = getattr(module, "__file__", None)
        if not isinstance(file, str) or name.partition(".")[0] in _OWN or file.startswith(_installed()):
            continue
        if name in _MAIN and any(Path(file).is_relative_to(_ROOT / own) for own in _OWN):
            continue  # a command of the suite, which its server does not have
        if Path(file).is_file():
            yield name, Path(file)


# Files


def _read(path: Path) -> Results | None:
    """The entry; None if there is none or it is damaged."""
    try:
        data = path.read_bytes()
    except OSError:
        return None
    digest, body = data[:_DIGEST], data[_DIGEST:]
    if hashlib.blake2b(body).digest() != digest:
        return None
    tensors = load(body)
    about = json.loads(bytes(tensors.pop("about").tolist()))
    envelopes = {name: _envelope(name, found, tensors) for name, found in about["envelopes"].items()}
    return Results(envelopes, tensors, about["facts"])


def _envelope(name: str, about: dict[str, Any], tensors: dict[str, Tensor]) -> Envelope:
    """An envelope of an entry; takes its tensors out of `tensors`."""
    exact = tensors.pop(f"{name} exact")
    sigma = tensors.pop(f"{name} sigma")
    usable, undecided = (
        torch.full(exact.shape, about["masks"][mask]) if mask in about["masks"] else tensors.pop(f"{name} {mask}")
        for mask in _MASKS
    )
    blocks = tuple(Block(**block) for block in about["blocks"])
    return Envelope(
        getattr(torch, about["dtype"]), exact, usable, sigma, **about["statistics"], undecided=undecided, blocks=blocks
    )


def _copy(tensor: Tensor) -> Tensor:
    """The values in memory of their own, one after the other, as safetensors wants them."""
    return tensor.clone(memory_format=torch.contiguous_format)


def _write(path: Path, found: Results) -> None:
    tensors = {name: _copy(tensor) for name, tensor in found.tensors.items()}
    about: dict[str, Any] = {"facts": found.facts, "envelopes": {}}
    for name, envelope in found.envelopes.items():
        tensors |= {f"{name} {part}": _copy(getattr(envelope, part)) for part in ("exact", "sigma")}
        masks = {}
        for mask in _MASKS:
            value = getattr(envelope, mask)
            if bool(value.all()) or not bool(value.any()):
                masks[mask] = bool(value.all())
            else:
                tensors[f"{name} {mask}"] = _copy(value)
        about["envelopes"][name] = {
            "dtype": str(envelope.dtype).removeprefix("torch."),
            "masks": masks,
            "statistics": {part: getattr(envelope, part) for part in ("largest", "rms", "gain")},
            "blocks": [asdict(block) for block in envelope.blocks],
        }
    if sum(tensor.nbytes for tensor in tensors.values()) > LARGEST:
        return
    tensors["about"] = torch.frombuffer(bytearray(json.dumps(about).encode()), dtype=torch.uint8)
    body = save(tensors)
    if not path.parent.exists():
        _remove_old(path.parents[1], path.parent.name)
    try:
        write_bytes_atomically(path, hashlib.blake2b(body).digest() + body)
    except OSError:  # a full or read-only disk: the result is there, and is computed again the next time
        return


def _remove_old(root: Path, new: str) -> None:
    """Remove the folders that are not used any more. Of the kind of the `new` one, room is made for it."""
    ages = dict[Path, float]()
    for folder in root.glob("*"):
        with suppress(FileNotFoundError):  # another run has just removed it
            ages[folder] = time.time() - folder.stat().st_mtime
    for outside, most in ((False, SUITES), (True, OUTSIDE)):
        latest = sorted((folder for folder in ages if _is_outside(folder.name) == outside), key=lambda one: ages[one])
        room = most - (_is_outside(new) == outside)
        for place, folder in enumerate(latest):
            if place >= room or ages[folder] > KEPT_SECONDS:
                shutil.rmtree(folder, ignore_errors=True)


def _is_outside(name: str) -> bool:
    """Whether that is the folder of a contract from outside: its name has a second digest."""
    return "-" in name
