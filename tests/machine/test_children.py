"""Children that measure: they die with their parent and leave signals to it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time

import psutil
import pytest

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
