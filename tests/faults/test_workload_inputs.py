"""Damaged inputs of workloads: whatever became of the file, its reader answers with a `UsageError` that names it."""

from __future__ import annotations

import os
import random
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from fuzz_targets import TARGETS, tried

from perfport.model.errors import UsageError

READERS = ("cascade", "libsvm", "npz", "npy", "bvecs", "fvecs", "tree", "image")
SUPPORT = Path(__file__).parents[1] / "support"

#: What became of a file's bytes.
DAMAGE: dict[str, Callable[[bytes], bytes]] = {
    "empty": lambda old: b"",
    "first byte alone": lambda old: old[:1],
    "half": lambda old: old[: len(old) // 2],
    "last byte missing": lambda old: old[:-1],
    "first byte missing": lambda old: old[1:],
    "zeros": lambda old: bytes(len(old)),
    "end is zeros": lambda old: old[: len(old) // 2] + bytes(len(old) - len(old) // 2),
    "ones": lambda old: b"\xff" * len(old),
    "noise": lambda old: random.Random(1).randbytes(len(old)),
    "noise behind": lambda old: old + random.Random(2).randbytes(100),
    "twice": lambda old: old + old,
    "reversed": lambda old: old[::-1],
    "high bits lost": lambda old: bytes(byte & 0x7F for byte in old),
    "as text of another system": lambda old: old.replace(b"\n", b"\r\n"),
    "a web page": lambda old: b"<!DOCTYPE html><html><body>404 Not Found</body></html>\n",
    "a pointer of Git LFS": lambda old: b"version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 1234\n",
    "JSON": lambda old: b'{"a": [1, 2]}\n',
    "a pickle": lambda old: b"\x80\x04\x95\x0b\x00\x00\x00\x00\x00\x00\x00]\x94(K\x01K\x02e.",
}


@pytest.mark.parametrize("damage", DAMAGE)
@pytest.mark.parametrize("name", READERS)
def test_damaged_bytes(name: str, damage: str, tmp_path: Path) -> None:
    target = TARGETS[name]
    for content in target.seeds().values():
        said = tried(target, DAMAGE[damage](content), tmp_path)  # raises for anything but a UsageError
        if damage in ("empty", "ones", "noise", "reversed", "a web page", "JSON", "a pickle"):
            assert target.name in said


@pytest.mark.parametrize("name", READERS)
def test_every_cut_and_every_flipped_byte(name: str, tmp_path: Path) -> None:
    target = TARGETS[name]
    content = next(iter(target.seeds().values()))
    for at in range(0, len(content), max(1, len(content) // 200)):
        tried(target, content[:at], tmp_path)
        tried(target, content[:at] + bytes([content[at] ^ 0x55]) + content[at + 1 :], tmp_path)


#: Run apart, under a limit: a reader that waits for a named pipe would hold the tests.
READ = """
import sys
from pathlib import Path
from fuzz_targets import TARGETS
from perfport.model.errors import UsageError
for name in sys.argv[2:]:
    try:
        TARGETS[name].read(Path(sys.argv[1]) / TARGETS[name].name)
    except UsageError as error:
        print(name, error)
"""


def said_of(folder: Path) -> dict[str, str]:
    """What each reader says of the thing in the folder that has the name of its file."""
    done = subprocess.run(
        [sys.executable, "-c", READ, str(folder), *READERS],
        capture_output=True, text=True, timeout=300, check=True, env={**os.environ, "PYTHONPATH": str(SUPPORT)},
    )  # fmt: skip
    return dict(line.split(" ", 1) for line in done.stdout.splitlines())


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (os.mkfifo, "expected a file, got a FIFO"),
        (lambda path: path.mkdir(), "expected a file, got a folder"),
        (lambda path: path.symlink_to("/dev/zero"), "expected a file, got a device"),
        (lambda path: path.symlink_to(path), "cannot be read"),
        (lambda path: None, "cannot be read"),
    ],
    ids=["named pipe", "folder", "device", "link to itself", "missing"],
)
def test_what_is_no_file(make: Callable[[Path], None], message: str, tmp_path: Path) -> None:
    for name in READERS:
        make(tmp_path / TARGETS[name].name)
    said = said_of(tmp_path)
    assert set(said) == set(READERS)
    wrong = {name: text for name, text in said.items() if TARGETS[name].name not in text}
    # LIBSVM: a path without a file is no name of a data set.
    wrong |= {name: text for name, text in said.items() if message not in text and "nor a file" not in text}
    assert wrong == {}


@pytest.mark.parametrize("name", READERS)
def test_no_permission(name: str, tmp_path: Path) -> None:
    if os.geteuid() == 0:
        pytest.skip("root may read everything")
    path = tmp_path / TARGETS[name].name
    path.write_bytes(b"1")
    path.chmod(0)
    with pytest.raises(UsageError, match="Permission denied"):
        TARGETS[name].read(path)
