"""Messages to and from a process that may be hostile: neither reading nor writing can hold the judge.

A message is framed as by `multiprocessing.connection.Connection`: its length in four bytes, or in eight more after -1,
then its bytes. The thread that asks reads and writes: to hand a message from thread to thread takes longer than most
calls.
"""

from __future__ import annotations

import os
import select
import struct
import time
from contextlib import suppress
from multiprocessing.connection import Connection

#: Bytes that are read at once.
_BLOCK = 1 << 16
_SHORT, _LONG = struct.Struct("!i"), struct.Struct("!Q")


class TooLarge(OSError):
    """A message that is announced is larger than what is taken."""


class Wire:
    """One end of a connection."""

    def __init__(self, connection: Connection, largest: int) -> None:
        """`largest` is the most bytes of a message that comes in."""
        self._connection, self._largest = connection, largest
        os.set_blocking(connection.fileno(), False)
        self._events = select.poll()
        self._out, self._in = memoryview(b""), bytearray()

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()

    @property
    def closed(self) -> bool:
        """Whether it was closed here."""
        return self._connection.closed

    def is_silent(self) -> bool:
        """Whether nothing has come that was not received, and the other end is open."""
        return not self._in and not self._wait(select.POLLIN, 0)

    def send(self, *messages: bytes) -> None:
        """Write them: now as far as there is room, the rest while `receive` waits."""
        framed = (part for message in messages for part in (_length(len(message)), message))
        self._out = memoryview(b"".join([self._out, *framed]))
        self._write()

    def receive(self, seconds: float, largest: int | None = None) -> bytes | None:
        """The next message; None if it is not complete after that time.

        Raises EOFError if the other end is closed, and TooLarge for a message of more than `largest` bytes.
        """
        largest = self._largest if largest is None else largest
        deadline = time.monotonic() + seconds
        while (found := self._message(largest)) is None:
            left = deadline - time.monotonic()
            if left <= 0:
                return None
            ready = self._wait(select.POLLIN | (select.POLLOUT if self._out else 0), left)
            if ready & select.POLLOUT:
                self._write()
            if ready & ~select.POLLOUT:  # the end of the connection is found by reading, too
                with suppress(BlockingIOError):
                    block = os.read(self._connection.fileno(), _BLOCK)
                    if not block:
                        raise EOFError
                    self._in += block
        return found

    def _wait(self, events: int, seconds: float) -> int:
        """Those of the events that are there, within the time."""
        self._events.register(self._connection.fileno(), events)
        return sum(found for _, found in self._events.poll(1000 * seconds))

    def _write(self) -> None:
        try:
            while self._out:
                self._out = self._out[os.write(self._connection.fileno(), self._out) :]
        except BlockingIOError:
            pass
        except OSError:  # the process has ended: reading says so
            self._out = memoryview(b"")

    def _message(self, largest: int) -> bytes | None:
        """The first message that has come; None if it is not complete."""
        start = _SHORT.size
        if len(self._in) < start:
            return None
        (length,) = _SHORT.unpack_from(self._in)
        if length == -1:
            if len(self._in) < start + _LONG.size:
                return None
            (length,) = _LONG.unpack_from(self._in, start)
            start += _LONG.size
        if not 0 <= length <= largest:
            raise TooLarge(f"a message of {length} bytes")
        if len(self._in) < start + length:
            return None
        message = bytes(memoryview(self._in)[start : start + length])
        del self._in[: start + length]
        return message


def _length(length: int) -> bytes:
    return _SHORT.pack(length) if length <= 0x7FFFFFFF else _SHORT.pack(-1) + _LONG.pack(length)
