"""Messages to a process that may be hostile: none is lost, and neither reading nor writing holds the judge."""

from __future__ import annotations

import os
import socket
import threading
from collections.abc import Iterator, Sequence
from multiprocessing.connection import Connection

import pytest

from harness.executing import runner
from harness.running import wire as framing
from harness.running.wire import Wire

_WRITEV = os.writev
#: More than the buffers of a socket hold.
LONG = bytes(range(256)) * 20_000


@pytest.fixture
def ends() -> Iterator[tuple[Wire, Connection]]:
    ours, theirs = socket.socketpair()
    wire, other = Wire(Connection(ours.detach()), largest=len(LONG)), Connection(theirs.detach())
    yield wire, other
    wire.close()
    other.close()


def test_messages_arrive_whole_and_in_order(ends: tuple[Wire, Connection]) -> None:
    wire, other = ends

    def answer() -> None:
        for _ in range(3):
            other.send_bytes(other.recv_bytes())

    thread = threading.Thread(target=answer)
    thread.start()
    wire.send(b"first", LONG)
    wire.send(b"")
    assert [wire.receive(60.0) for _ in range(3)] == [b"first", LONG, b""]
    thread.join()
    assert wire.is_silent()


def test_what_the_runner_sends_arrives_whole(ends: tuple[Wire, Connection]) -> None:
    wire, other = ends
    messages = (b"header", LONG, b"")
    thread = threading.Thread(target=runner.send, args=(other, *messages))
    thread.start()
    assert [wire.receive(60.0) for _ in messages] == list(messages)
    thread.join()
    assert wire.is_silent()


def test_the_runner_makes_one_call_for_a_reply(ends: tuple[Wire, Connection], monkeypatch: pytest.MonkeyPatch) -> None:
    wire, other = ends
    calls = []

    def counted(descriptor: int, parts: Sequence[memoryview]) -> int:
        calls.append(len(parts))
        return _WRITEV(descriptor, parts)

    monkeypatch.setattr(os, "writev", counted)
    runner.send(other, b"header", b"tensors")
    assert [wire.receive(60.0) for _ in range(2)] == [b"header", b"tensors"]
    assert calls == [4]


@pytest.mark.parametrize("length", [0, 2**31 - 1, 2**31, 2**40])
def test_the_runner_frames_a_message_as_the_judge_does(length: int) -> None:
    assert runner._length(length) == framing._length(length)


def test_who_does_not_read_holds_nobody(ends: tuple[Wire, Connection]) -> None:
    wire, _ = ends
    wire.send(LONG, LONG)
    assert wire.receive(0.01) is None


def test_half_a_message_is_none(ends: tuple[Wire, Connection]) -> None:
    wire, other = ends
    with socket.socket(fileno=socket.dup(other.fileno())) as raw:
        raw.send(b"\0\0\0\5half")
        assert wire.receive(0.01) is None
        assert not wire.is_silent()
        raw.send(b".")
        assert wire.receive(60.0) == b"half."


@pytest.mark.parametrize("frame", [b"\x7f\xff\xff\xff", b"\xff\xff\xff\xff\x7f" + bytes(7), b"\xff\xff\xff\xfe"])
def test_a_message_that_is_too_large_is_not_read(ends: tuple[Wire, Connection], frame: bytes) -> None:
    wire, other = ends
    with socket.socket(fileno=socket.dup(other.fileno())) as raw:
        raw.send(frame)
        with pytest.raises(OSError, match=r"a message of -?[0-9]+ bytes"):
            wire.receive(60.0)


def test_the_end_is_found(ends: tuple[Wire, Connection]) -> None:
    wire, other = ends
    other.send_bytes(b"last")
    other.close()
    wire.send(b"nobody reads this")
    assert wire.receive(60.0) == b"last"
    assert not wire.is_silent()
    with pytest.raises(EOFError):
        wire.receive(60.0)
