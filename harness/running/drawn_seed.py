"""The seed of drawn calls: the same in each run of a command on a machine, and unknown to what is judged.

A verdict should be a function of its inputs, so the seed is fixed. But a candidate that knew it could be right for the
drawn calls alone. So a candidate's seed comes from a key that is made once for a user, and that a sandbox hides.
"""

from __future__ import annotations

import argparse
import hashlib
import hmac
import os
import secrets
from collections.abc import Sequence

from harness.building.cache import state_root
from harness.candidate import Candidate, candidate
from harness.errors import UsageError
from harness.running.candidate_files import file_of
from harness.running.option_values import whole

#: The value of `--examples-seed` for another seed in each run.
RANDOM = "random"
_BYTES = 32


def seed_or_random(text: str) -> int | str:
    """A whole number, or `random`. Raises ArgumentTypeError."""
    if text == RANDOM:
        return text
    try:
        return whole(0)(text)
    except argparse.ArgumentTypeError as error:
        raise argparse.ArgumentTypeError(f"{error}, or {RANDOM}") from None


def chosen(given: int | str | None, candidates: Sequence[str]) -> int:
    """The seed of a run: as given; else 0 for backends, and for candidates one of their files and of the key."""
    if isinstance(given, int):
        return given
    if given == RANDOM:
        return secrets.randbits(31)
    if not candidates:
        return 0
    digest = hmac.new(_key(), b"", hashlib.sha256)
    for text in candidates:
        digest.update(_contents(text))
    return int.from_bytes(digest.digest()[:4], "big") >> 1


def _contents(text: str) -> bytes:
    """What identifies a candidate on any machine: its function, and the bytes of its file."""
    try:
        found: Candidate = candidate(text)
        return f"{found.operator}:{found.attribute}".encode() + file_of(found.where).read_bytes()
    except (OSError, UsageError):  # told where the candidate is read
        return text.encode()


def _key() -> bytes:
    """The key of this user, made at the first use; another one in each run where it cannot be kept."""
    path = state_root() / "key"
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        try:
            descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        except FileExistsError:
            key = path.read_bytes()
            return key if len(key) == _BYTES else secrets.token_bytes(_BYTES)
        with os.fdopen(descriptor, "wb") as file:
            key = secrets.token_bytes(_BYTES)
            file.write(key)
            return key
    except (OSError, RuntimeError):  # RuntimeError: there is no home
        return secrets.token_bytes(_BYTES)
