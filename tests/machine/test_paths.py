"""Paths in results: whose they are, and where he keeps things, is not told."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from perfport.machine import paths


@pytest.fixture(autouse=True)
def ann(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A user whose home is not where homes are by default."""
    monkeypatch.setenv("HOME", "/u/ann")
    monkeypatch.setenv("USER", "ann")
    paths._of_this_machine.cache_clear()
    yield
    paths._of_this_machine.cache_clear()


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("/u/ann/results/run", "~/results/run"),
        ("/u/ann", "~"),
        ("--out=/u/ann/run", "--out=~/run"),
        ("-I/u/ann/include -L/home/bob/lib", "-I~/include -L~/lib"),
        ('File "/u/ann/my.py", line 3', 'File "~/my.py", line 3'),
        ("lies in /u/ann.", "lies in ~."),
        ("/u/anna/x and /u/ann.old/x and /u/ann-2", "/u/anna/x and /u/ann.old/x and /u/ann-2"),
        ("/home/bob.b/x, /Users/bob/x, /root/x, /root", "~/x, ~/x, ~/x, ~"),
        ("/opt/home/x /rooted/x a/root/x", "/opt/home/x /rooted/x a/root/x"),
        ("file:///home/bob/x https://example.org/home/bob", "file://~/x https://example.org/home/bob"),
        ("/scratch/ann/kernels /scratch/ann", "/scratch/$USER/kernels /scratch/$USER"),
        ("/tmp/run /var/tmp/run", "$TMPDIR/run $TMPDIR/run"),
        ("/usr/lib/libpocl.so libpocl.so.2 results/run", "/usr/lib/libpocl.so libpocl.so.2 results/run"),
        ("~/x $TMPDIR/home/x", "~/x $TMPDIR/home/x"),
    ],
)
def test_paths_in_texts(text: str, kept: str) -> None:
    assert paths.shortened(text) == kept
    assert paths.shortened(kept) == kept, "what is short stays so"


def test_folders_of_this_process() -> None:
    tree = Path(paths.__file__).parents[3]
    assert paths.shortened(f"{sys.prefix}/lib/libintelocl.so") == "$VENV/lib/libintelocl.so"
    assert paths.shortened(f"{tree}/workloads/x.py") in (
        "$PERFPORT/workloads/x.py",
        f"$VENV/{tree.name}/workloads/x.py",
    )
    assert paths.shortened(f"{tempfile.gettempdir()}/x") == "$TMPDIR/x"


def test_folders_of_another_machine() -> None:
    assert paths.shortened("/opt/v/lib/libintelocl.so /opt/venv", {"/opt/v": "$VENV"}) == (
        "$VENV/lib/libintelocl.so /opt/venv"
    )


def test_every_text_of_a_value_but_no_key() -> None:
    value = {"/u/ann/x": ["/u/ann/x", {"b": ("/u/ann", 1, None, 2.5)}]}
    assert paths.shorten(value) == {"/u/ann/x": ["~/x", {"b": ["~", 1, None, 2.5]}]}


def test_a_command_can_be_read_and_typed() -> None:
    command = ["perfport", "run", "~/my.yaml", "--out=$TMPDIR/run", "-b", "two words", "$(x)", "~/two words"]
    assert paths.shell(command) == ("perfport run ~/my.yaml --out=$TMPDIR/run -b 'two words' '$(x)' '~/two words'")


@pytest.mark.parametrize("home", ["/", ""])
def test_a_user_without_a_home(home: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", home)
    paths._of_this_machine.cache_clear()
    assert paths.shortened("/usr/lib/x.so /etc/y") == "/usr/lib/x.so /etc/y"
