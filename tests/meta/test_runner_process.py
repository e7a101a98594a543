"""The judge's end of the connection: a reply belongs to its question, and nothing in it can hold or fool the judge."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest

from harness.judging.remote import RunnerFailure
from harness.running import runner_process
from harness.running.runner_process import RunnerProcess

ANSWERING = """
import json, os, sys, time
from multiprocessing.connection import Connection
connection = Connection(int(sys.argv[1]))
def asked():
    header = json.loads(connection.recv_bytes())
    connection.recv_bytes()
    return header
def reply(header, tensors=b"\\x02" + bytes(7) + b"{}"):
    connection.send_bytes(json.dumps(header).encode())
    connection.send_bytes(tensors)
"""

Make = Callable[..., RunnerProcess]


@pytest.fixture
def make(tmp_path: Path, request: pytest.FixtureRequest) -> Make:
    def made(body: str, memory: int = 2**30) -> RunnerProcess:
        program = tmp_path / "answering.py"
        program.write_text(ANSWERING + body)
        process = RunnerProcess([sys.executable, str(program)], tmp_path, dict(os.environ), memory)
        request.addfinalizer(process.stop)
        return process

    return made


def test_a_reply_is_read(make: Make) -> None:
    process = make(
        "from safetensors.torch import save\nimport torch\n"
        "while True:\n    reply({'id': asked()['id'], 'x': 1}, save({'a': torch.ones(2)}))"
    )
    for _ in range(2):
        header, tensors = process.ask({"do": "this"}, seconds=60)
        assert header["x"] == 1
        assert tensors["a"].tolist() == [1, 1]


@pytest.mark.parametrize(
    ("body", "how"),
    [
        ("asked(); reply({'id': 'another'}); time.sleep(60)", "does not belong to the question"),
        ("asked(); reply([]); time.sleep(60)", "does not belong to the question"),
        ("asked(); connection.send_bytes(b'{'); connection.send_bytes(b'x'); time.sleep(60)", "is no reply"),
        (
            "id = asked()['id']; connection.send_bytes(json.dumps({'id': id}).encode()); "
            "connection.send_bytes(b'no tensors'); time.sleep(60)",
            "is no reply",
        ),
        (
            "asked(); os.write(connection.fileno(), b'\\x00\\x00\\x01\\x00half'); time.sleep(60)",
            "still running after 1 s",
        ),
        (
            "asked(); os.write(connection.fileno(), b'\\x7f\\xff\\xff\\xff'); time.sleep(60)",
            "sent a message of 2147483647 bytes",
        ),
        ("asked(); connection.close(); time.sleep(60)", "closed its connection"),
        ("asked(); os._exit(0)", "exited with code 0"),
        ("asked(); os.abort()", "died of SIGABRT"),
        ("asked(); time.sleep(60)", "still running after 1 s"),
    ],
)
def test_what_is_no_reply_ends_the_process(make: Make, body: str, how: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runner_process, "_GRACE", 0.5)  # for a process that sleeps
    process = make(f"first = asked(); reply({{'id': first['id']}})\n{body}")
    process.ask({}, seconds=60)
    with pytest.raises(RunnerFailure, match=how):
        process.ask({}, seconds=1 if "running" in how else 60)
    assert not process.alive


def test_a_reply_too_many_is_noticed(make: Make) -> None:
    process = make("id = asked()['id']; reply({'id': id}); reply({'id': id}); asked(); time.sleep(60)")
    process.ask({}, seconds=60)
    time.sleep(0.5)
    with pytest.raises(RunnerFailure, match="nobody asked for"):
        process.ask({}, seconds=3)


FORKS = """
id = asked()['id']
if os.fork() == 0:
    os.setsid()
    {work}
    time.sleep(60)
reply({{'id': id, 'parent': os.getpid()}})
asked(); time.sleep(60)
"""


def test_the_memory_of_a_child_counts(make: Make) -> None:
    process = make(FORKS.format(work="time.sleep(1); kept = b'x' * 2**29"), memory=2**28)
    process.ask({}, seconds=60)
    with pytest.raises(RunnerFailure, match=r"took more than 0\.25 GB of memory"):
        process.ask({}, seconds=30)


def test_memory_that_children_share_counts_once(make: Make) -> None:
    """Four processes with the same 200 MB have 800 resident."""
    process = make(
        "kept = b'x' * (200 * 2**20); first = asked()['id']; reply({'id': first}); second = asked()['id']\n"
        "for _ in range(3):\n    if os.fork() == 0: time.sleep(60)\n"
        "time.sleep(1.5); reply({'id': second}); asked()",
        memory=2**28,
    )
    for _ in range(2):
        process.ask({}, seconds=30)
    assert process._resident() > 2**29


def test_texts_have_nothing_that_a_terminal_obeys(make: Make) -> None:
    odd = r"{'a\\x1b[2J': ['\\u202e', '\\ud800', 'plain']}"
    process = make(f"id = asked()['id']; print('\\x1b[2J', flush=True); reply({{'id': id, 'odd': {odd}}}); asked()")
    header, _ = process.ask({}, seconds=60)
    assert header["odd"] == {r"a\x1b[2J": [r"\u202e", r"\ud800", "plain"]}
    process.stop()  # what it printed is complete then
    assert process.said == r"\x1b[2J"


def test_memory_before_the_first_reply_does_not_count(make: Make) -> None:
    process = make(
        "first = asked()['id']; kept = b'x' * 2**29; time.sleep(1); reply({'id': first}); "
        "second = asked()['id']; time.sleep(1); reply({'id': second}); asked()",
        memory=2**28,
    )
    for _ in range(2):
        process.ask({}, seconds=30)


def test_children_end_with_the_process(make: Make) -> None:
    """A child in a session of its own, too."""
    process = make(FORKS.format(work="pass"))
    header, _ = process.ask({}, seconds=60)
    children = psutil.Process(header["parent"]).children()
    assert len(children) == 1
    process.stop()
    gone, left = psutil.wait_procs(children, timeout=5)
    assert not left, gone


def test_endless_output_is_not_kept(make: Make) -> None:
    body = "asked_id = asked()['id']\nfor _ in range(1600):\n    os.write(1, b'x' * 2**16)\n"
    process = make(body + "print('the last line', flush=True)\nreply({'id': asked_id}); asked()")
    process.ask({}, seconds=60)
    time.sleep(0.2)
    assert len(process.said) < 100_000
    assert process.said.endswith("the last line")


def test_processor_time_is_that_of_children_too(make: Make) -> None:
    process = make(
        "import subprocess\n"
        "reply({'id': asked()['id']})\n"
        "subprocess.Popen([sys.executable, '-c', 'while True: pass'])\n"
        "asked(); time.sleep(60)"
    )
    process.ask({}, seconds=60)
    before, deadline = process.cpu_seconds(), time.monotonic() + 30
    while process.cpu_seconds() < before + 0.5 and time.monotonic() < deadline:
        time.sleep(0.1)
    assert process.cpu_seconds() >= before + 0.5
