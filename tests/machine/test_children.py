"""Children that measure: they die with their parent and leave signals to it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time

import psutil
import pytest

from perfport.machine.children import held_back

CHILD = (
    "import signal, sys, time; from perfport.machine.children import obey_parent; obey_parent(signal.SIGTERM);"
    "print('ready', flush=True); time.sleep(60)"
)


@pytest.mark.parametrize(
    ("sent", "survives"),
    [(signal.SIGINT, True), (signal.SIGTERM, True), (signal.SIGHUP, True), (signal.SIGQUIT, False)],
)
def test_signals_that_are_the_parent_s(sent: signal.Signals, survives: bool) -> None:
    with subprocess.Popen([sys.executable, "-c", CHILD], stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout and child.stdout.readline() == "ready\n"
        child.send_signal(sent)
        try:
            assert child.wait(1 if survives else 20) == -sent and not survives
        except subprocess.TimeoutExpired:
            assert survives
        finally:
            child.kill()


def test_a_library_that_takes_a_signal_over_does_not_get_it() -> None:
    """As LLVM does while it writes a file, which it then deletes; in a process with threads of other libraries."""
    program = (
        "import threading, time; threading.Thread(target=time.sleep, args=(60,), daemon=True).start();"
        + CHILD.replace("print(", "signal.signal(signal.SIGHUP, lambda *_: sys.exit(3)); print(")
    )
    with held_back():
        child = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True)
    with child:
        assert child.stdout and child.stdout.readline() == "ready\n"
        child.send_signal(signal.SIGHUP)
        with pytest.raises(subprocess.TimeoutExpired):
            child.wait(1)
        child.kill()
    assert not {signal.SIGINT, signal.SIGHUP} & signal.pthread_sigmask(signal.SIG_BLOCK, set())


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells a process of its parent's end")
def test_a_child_dies_with_its_parent() -> None:
    program = (
        "import subprocess, sys; child = subprocess.Popen([sys.executable, '-c', sys.argv[1]], stdout=subprocess.PIPE);"
        "child.stdout.readline(); print(child.pid, flush=True); input()"
    )
    with subprocess.Popen(
        [sys.executable, "-c", program, CHILD], stdout=subprocess.PIPE, stdin=subprocess.PIPE, text=True
    ) as parent:
        assert parent.stdout
        child = psutil.Process(int(parent.stdout.readline()))
        os.kill(parent.pid, signal.SIGKILL)
        deadline = time.monotonic() + 20
        while child.is_running() and child.status() != psutil.STATUS_ZOMBIE and time.monotonic() < deadline:
            time.sleep(0.02)
        assert not child.is_running() or child.status() == psutil.STATUS_ZOMBIE
