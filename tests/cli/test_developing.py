"""``dev``: exit codes of one round; and a loop that is ended by Ctrl-C."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import edited_workload as edited
import pytest
from commands import Cli

from perfport.model.device import DeviceInfo

pytestmark = pytest.mark.any_device


@pytest.mark.parametrize(
    ("fault", "code", "told"), [("", 0, "RIGHT"), ("tail", 3, "WRONG"), ("no_compile", 4, "scale.cl:3")]
)
def test_one_round(main: Cli, tmp_path: Path, opencl_infos: list[DeviceInfo], fault: str, code: int, told: str) -> None:
    own = edited.write(tmp_path)
    edited.save(own, edited.FAULTS.get(fault, edited.RIGHT))
    ended, out, err = main("dev", edited.CASE, "--once", "-d", opencl_infos[0].id, "--workloads", own)
    assert (ended, told in out) == (code, True), out + err
    assert len(out.splitlines()) <= 24


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("edited/double/plane",), "did you mean 'plain'?"),
        ((edited.CASE, "--preset", "huge"), "--preset: 'huge' is not one of quick"),
        ((edited.CASE, "--timeout", "0"), "timeout"),
    ],
)
def test_wrong_arguments_are_named(main: Cli, tmp_path: Path, arguments: tuple[str, ...], told: str) -> None:
    code, _, err = main("dev", *arguments, "--workloads", edited.write(tmp_path), discover=False)
    assert code == 2 and told in err


def test_the_loop_goes_on_after_a_fault_and_ends_with_ctrl_c(
    tmp_path: Path, opencl_infos: list[DeviceInfo], no_ceilings: Any
) -> None:
    own = edited.write(tmp_path)
    command = [sys.executable, "-m", "perfport.cli", "dev", edited.CASE, "-d", opencl_infos[0].id, "--workloads", own]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env={**os.environ, **no_ceilings}
    ) as child:
        assert child.stdout

        def until(told: str) -> None:
            for row in child.stdout:
                if told in row:
                    return
            raise AssertionError(f"ended without {told!r}: {child.stderr and child.stderr.read()}")

        until("RIGHT at 3 sizes")
        edited.save(own, edited.FAULTS["crash"])
        until("CRASHES")
        edited.save(own, "y[i] = 2.0f * x[i];")
        until("RIGHT at 3 sizes")
        child.send_signal(signal.SIGINT)
        out, err = child.communicate(timeout=60)
    assert child.returncode == 130 and "Traceback" not in out + err
