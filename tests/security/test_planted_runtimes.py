"""Another user plants OpenCL runtimes where a run looks for its own: none of them is loaded."""

from __future__ import annotations

import _ctypes
import contextlib
import hashlib
import os
import time
from pathlib import Path
from typing import Any

from second_user import NOBODY, as_root, meanwhile, shared_folder

from perfport.machine import platforms


def plant(top: Path, library: Path) -> None:
    """Write files that name a library into every folder that a run makes, as soon as it is there."""
    while True:
        for folder in [*top.glob("perfport-*"), *top.glob("perfport-*/*"), *top.glob("perfport-*/*/*")]:
            with contextlib.suppress(OSError):
                (folder / "0.icd").write_text(str(library))
                (folder / "planted.icd").write_text(str(library))
        time.sleep(0.002)


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
def test_no_library_of_another_user_is_loaded(perfport: Any, no_ceilings: dict[str, str]) -> None:
    module = Path(_ctypes.__file__)  # any library: what counts is whether it is mapped
    with shared_folder() as top:
        library = top / "libplanted.so"
        library.write_bytes(module.read_bytes())
        library.chmod(0o755)
        os.chown(library, NOBODY, NOBODY)
        plant_by_name(top, library)
        logs = top / "logs"
        logs.mkdir(mode=0o700)
        # The dynamic linker tells which files every process of the run maps.
        env = {**no_ceilings, "TMPDIR": str(top), "LD_DEBUG": "files", "LD_DEBUG_OUTPUT": str(logs / "ld")}
        with meanwhile(plant, top, library):
            done = perfport("devices", env=env)
        assert done.returncode == 0, done.stderr
        told = [path.read_text(errors="replace") for path in logs.iterdir()]
        assert any("libOpenCL" in text or "pyopencl" in text for text in told), "the linker was listened to"
        assert not [text for text in told if "libplanted" in text], "the other user's code ran as this one"
        left = [path.name for path in top.glob(f"perfport-{os.geteuid()}-*")]
        assert left == [], "folders that are left over"
