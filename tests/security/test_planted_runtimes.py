"""Another user plants OpenCL runtimes where a run looks for its own: none of them is loaded."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import sysconfig
from pathlib import Path
from typing import Any

import pytest
from second_user import NOBODY, as_root, shared_folder

from perfport.machine import platforms

#: What the other user does while the suite runs: in every folder that it makes, write files that name his library.
PLANT = """
import pathlib, sys, time
top, library = pathlib.Path(sys.argv[1]), sys.argv[2]
print("ready", flush=True)
while True:
    for folder in [*top.glob("perfport-*"), *top.glob("perfport-*/*")]:
        try:
            (folder / "0.icd").write_text(library)
            (folder / "planted.icd").write_text(library)
        except OSError:
            pass
    time.sleep(0.002)
"""


def plant_by_name(top: Path, library: Path) -> None:
    """Make the folders that the suite is known to have used, with names that follow from what is installed."""
    for runtime in platforms.runtimes().values():
        digest = hashlib.sha256(runtime.encode()).hexdigest()[:12]
        folder = top / f"perfport-icd-{os.geteuid()}-{digest}"
        folder.mkdir()
        (folder / "planted.icd").write_text(str(library))
        for path in (folder / "planted.icd", folder):
            os.chown(path, NOBODY, NOBODY)


@as_root
@pytest.mark.parametrize("command", [["devices"], ["list", "svm_rbf"]], ids=["devices", "list"])
def test_no_library_of_another_user_is_loaded(perfport: Any, no_ceilings: dict[str, str], command: list[str]) -> None:
    module = next(Path(sysconfig.get_path("platstdlib"), "lib-dynload").glob("*.so"))
    with shared_folder() as top:
        library = top / "libplanted.so"
        library.write_bytes(module.read_bytes())
        library.chmod(0o755)
        os.chown(library, NOBODY, NOBODY)
        plant_by_name(top, library)
        logs = top / "logs"
        logs.mkdir(mode=0o700)
        with subprocess.Popen(
            [sys.executable, "-c", PLANT, str(top), str(library)], user=NOBODY, group=NOBODY, extra_groups=[], cwd="/",
            stdout=subprocess.PIPE, text=True,
        ) as other:  # fmt: skip
            try:
                assert other.stdout and other.stdout.readline() == "ready\n"
                # The dynamic linker tells which files every process of the run maps.
                env = {**no_ceilings, "TMPDIR": str(top), "LD_DEBUG": "files", "LD_DEBUG_OUTPUT": str(logs / "ld")}
                done = perfport(*command, env=env)
            finally:
                other.kill()
        assert done.returncode == 0, done.stderr
        told = [path.read_text(errors="replace") for path in logs.iterdir()]
        assert any("libOpenCL" in text or "pyopencl" in text for text in told), "the linker was listened to"
        assert not [text for text in told if "libplanted" in text], "the other user's code ran as this one"
        left = [path.name for path in top.glob(f"perfport-{os.geteuid()}-*")]
        assert left == [], "folders that are left over"
