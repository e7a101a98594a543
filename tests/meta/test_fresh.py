"""Questions to fresh processes: each question has its own process, and always gets an answer or a reason."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import stat
import subprocess
import sys
import time
from functools import partial
from pathlib import Path

import pytest

from harness.judging import fresh_process
from tests.meta.conftest import Run

HERE = __name__


def about_itself(question: str) -> str:
    import torch

    state = {
        "question": question,
        "pid": os.getpid(),
        "parent": os.getppid(),
        "default": str(torch.get_default_dtype()),
        "watched": [name for name in os.environ if name.startswith("PYTEST_")],
        "backends": [name for name in sys.modules if name.startswith("backends.") and name != "backends.base"],
    }
    torch.set_default_dtype(torch.float64)
    os.environ["PYTEST_LEFT_BY_A_QUESTION"] = "1"
    print('{"answer": "what is printed is no answer"}', flush=True)
    return json.dumps(state)


def writes_to_every_pipe(question: str) -> str:
    print("printed", flush=True)
    for descriptor in map(int, os.listdir("/dev/fd")):
        with contextlib.suppress(OSError):
            if stat.S_ISFIFO(os.fstat(descriptor).st_mode):
                os.write(descriptor, b'{"late": false, "answer": "forged"}\n')
    return question


def raises(question: str) -> str:
    raise ValueError(question)


def dies(question: str) -> str:
    os.kill(os.getpid(), signal.SIGSEGV)
    return question


def raises_with_a_stack(question: str) -> str:
    raise RuntimeError(f"{question}\nadvice\nframe #0: <unknown function> + 0x129ecc (0x7f4a in libc.so.6)\n")


def terminates(question: str) -> str:
    print("terminate called after throwing an instance of 'c10::Error'", f"  what():  {question}", sep="\n", flush=True)
    for number in range(100):
        print(f"frame #{number}: <unknown function> + 0x129ecc (0x7f4a81929ecc in /lib/libc.so.6)", flush=True)
    os.abort()


def leaves(question: str) -> str:
    print("said before it left", flush=True)
    os._exit(int(question))


def hangs(question: str) -> str:
    time.sleep(60)
    return question


def sleeps_a_little(question: str) -> str:
    time.sleep(0.5)
    return question


def ends_the_server(question: str) -> str:
    os.kill(os.getppid(), signal.SIGKILL)
    return question


def ask(function: str, question: str = "?", limit: float = 60.0) -> str:
    return fresh_process.asked(HERE, function, question, limit)


def test_each_question_has_a_process_of_its_own_in_which_nothing_was_done() -> None:
    first, second = (json.loads(ask("about_itself", question)) for question in ("one", "two"))
    assert [first["question"], second["question"]] == ["one", "two"]
    assert len({first["pid"], second["pid"], os.getpid()}) == 3
    assert first["parent"] == second["parent"] != os.getpid()
    for state in (first, second):
        assert (state["default"], state["watched"]) == ("torch.float32", [])
        assert set(state["backends"]) <= {"backends.devices"}, "names of devices alone, and no backend"


def test_how_it_ended_is_told() -> None:
    with pytest.raises(fresh_process.NoAnswer, match="ValueError: of this question"):
        ask("raises", "of this question")
    for thrown in ("raises_with_a_stack", "terminates"):
        with pytest.raises(fresh_process.NoAnswer, match=r"of this one$"):
            ask(thrown, "of this one")
    with pytest.raises(fresh_process.NoAnswer, match="died of SIGSEGV"):
        ask("dies")
    with pytest.raises(fresh_process.NoAnswer, match="said before it left"):
        ask("leaves", "3")
    with pytest.raises(fresh_process.NoAnswer, match="said before it left"):
        ask("leaves", "0")


def test_what_hangs_is_ended() -> None:
    with pytest.raises(fresh_process.TooLate, match=r"still running after 0\.2 s"):
        ask("hangs", limit=0.2)
    assert json.loads(ask("about_itself", "after it"))["question"] == "after it"


def test_another_server_is_started_where_one_has_died() -> None:
    with pytest.raises(fresh_process.NoAnswer, match="died of SIGKILL"):
        ask("ends_the_server")
    assert json.loads(ask("about_itself", "after it"))["question"] == "after it"


def imported(question: str) -> str:
    return json.dumps({"parent": os.getppid(), "there": question in sys.modules})


def test_modules_are_imported_once_for_the_questions_that_want_them() -> None:
    ask_with = partial(fresh_process.asked, HERE, "imported", "torch._dynamo", 60.0, ("torch._dynamo",))
    without = [json.loads(ask("imported", "torch._dynamo"))]
    found = [json.loads(ask_with()) for _ in range(2)]
    without.append(json.loads(ask("imported", "torch._dynamo")))
    assert [answer["there"] for answer in (*found, *without)] == [True, True, False, False]
    assert found[0] == found[1], "one server"
    assert without[0] == without[1], "and another"
    with pytest.raises(fresh_process.NoAnswer, match="died of SIGKILL"):
        fresh_process.asked(HERE, "ends_the_server", "", 60.0, ("torch._dynamo",))
    assert json.loads(ask_with())["there"]
    assert json.loads(ask("imported", "torch._dynamo")) == without[0], "the first server goes on"
    with pytest.raises(fresh_process.NoAnswer, match="the process that forks"):
        fresh_process.asked(HERE, "imported", "", 60.0, ("no_such_module",))


@pytest.mark.long("whole")  # this file is imported in the process of a question, and so imports no tiers
def test_a_server_ends_with_the_process_that_asks() -> None:
    script = f"from harness.judging import fresh_process; print(fresh_process.asked({HERE!r}, 'about_itself', '', 60))"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=120)
    assert not Path(f"/proc/{json.loads(done.stdout)['parent']}").exists()


def test_nothing_asks_for_a_gpu_before_the_fork() -> None:
    """CUDA cannot be used in a child of a process that has initialised it."""
    script = """
import torch

def asked(*arguments):
    raise SystemExit("CUDA was asked for before the fork")

for name in ("is_available", "device_count", "current_device", "init", "get_device_properties"):
    setattr(torch.cuda, name, asked)
torch._C._cuda_getDeviceCount = asked
import io, sys
sys.stdin = io.StringIO("")
from harness.judging.fresh_process import serve
serve()
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False, timeout=120)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


#: Asks a server that is a fork, as that of a process which judges beside a candidate is.
_FORKED = f"""
import json

from harness.judging import fresh_process

fresh_process.begin()
ask = lambda function, question: fresh_process.asked("{HERE}", function, question, 60.0)
fresh_process.asked("{HERE}", "imported", "json", 60.0, ["json"])  # one more server, whose pipes this one has
print(json.dumps([ask("writes_to_every_pipe", "first"), ask("about_itself", "second"), ask("about_itself", "third")]))
"""


def test_what_is_printed_is_no_reply_of_a_forked_server(python: Run) -> None:
    done = python("-c", _FORKED)
    assert done.returncode == 0, done.stderr
    first, *others = json.loads(done.stdout.splitlines()[-1])
    assert [first, *(json.loads(answer)["question"] for answer in others)] == ["first", "second", "third"]


def test_forks_that_ask_at_the_same_time_get_their_own_answers() -> None:
    ask("about_itself")  # there is a server, which the forks share
    children = {}
    for number in range(4):
        reading, writing = os.pipe()
        child = os.fork()
        if child == 0:
            try:
                answers = [json.loads(ask("about_itself", f"{number}-{k}"))["question"] for k in range(3)]
                os.write(writing, json.dumps(answers).encode())
            finally:
                os._exit(0)
        os.close(writing)
        children[number] = child, reading
    for number, (child, reading) in children.items():
        with os.fdopen(reading) as answered:
            assert json.loads(answered.read()) == [f"{number}-{k}" for k in range(3)]
        os.waitpid(child, 0)


def test_the_reply_to_a_fork_that_was_ended_is_nobody_elses() -> None:
    ask("about_itself")
    child = os.fork()
    if child == 0:
        try:
            ask("sleeps_a_little")
        finally:
            os._exit(0)
    time.sleep(0.2)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    assert json.loads(ask("about_itself", "after it"))["question"] == "after it"
