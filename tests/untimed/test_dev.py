"""The loop of a kernel's author: each fault is told, and none ends the loop or costs the version that was right."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import edited_workload as edited
import pytest

from perfport.model.device import DeviceInfo
from perfport.model.record import Status
from perfport.untimed import show
from perfport.untimed.bench import Report
from perfport.untimed.dev import Loop

pytestmark = pytest.mark.any_device

#: Seconds: much more than any step takes here, beside other tests.
TIMEOUT = 20.0


@pytest.fixture
def own(tmp_path: Path) -> Path:
    return edited.write(tmp_path)


@pytest.fixture
def loop(own: Path, opencl_infos: list[DeviceInfo]) -> Iterator[Loop]:
    subject = show.find(edited.CASE, Path("nowhere"), "quick", [str(own)])
    made = Loop(subject, opencl_infos[:1], TIMEOUT, lambda step: None)
    yield made
    made.close()


def judged(loop: Loop) -> Report:
    """The report of the device that runs."""
    return next(iter(loop.round().reports.values()))


def test_saves_are_judged_beside_what_was_right_before(loop: Loop, own: Path) -> None:
    first = loop.round()
    report = next(iter(first.reports.values()))
    assert report.status is Status.OK, report.reason
    assert (first.number, first.changed, report.sizes, report.before) == (1, (), 3, None)
    assert report.rival_name == "other" and report.rival and report.record and report.record.timing
    offline = list(first.reports.values())[1]
    assert offline.status in (Status.OK, Status.UNAVAILABLE) and not (first.wrong or first.failed)

    edited.save(own, edited.FAULTS["no_compile"])
    broken = loop.round()
    report = next(iter(broken.reports.values()))
    assert broken.changed == ("kernels/scale.cl",) and broken.failed and not broken.wrong
    assert report.status is Status.COMPILE_ERROR and "scale.cl:3:" in report.reason and "undeclared;" in report.log

    for fault, pattern in (("tail", "the last 3 elements"), ("seventh", "every 7th element from 0")):
        edited.save(own, edited.FAULTS[fault])
        report = judged(loop)
        assert report.status is Status.WRONG and pattern in report.reason and "got 7, expected" in report.reason
    edited.save(own, edited.FAULTS["nan"])
    report = judged(loop)
    assert report.status is Status.WRONG and "every element" in report.reason and "got nan, expected" in report.reason

    edited.save(own, "y[i] = 2.0f * x[i];")
    report = judged(loop)
    assert report.status is Status.OK and report.before and report.rival, report.reason


def test_an_editors_lock_that_is_a_link_to_nowhere_does_not_end_the_loop(loop: Loop, own: Path) -> None:
    (own / "kernels" / ".#scale.cl").symlink_to("author@host.123:456")
    assert loop._copy().folder.joinpath("kernels", "scale.cl").is_file()
    edited.save(own, edited.FAULTS["tail"])
    report = judged(loop)
    assert report.status is Status.WRONG and "the last 3 elements" in report.reason


def test_a_kernel_that_takes_the_process_along_or_hangs_is_told(loop: Loop, own: Path) -> None:
    edited.save(own, edited.FAULTS["crash"])
    report = judged(loop)
    assert report.status is Status.CRASHED and "verifying at n=65" in report.reason
    edited.save(own, edited.FAULTS["hang"])
    report = judged(loop)
    assert report.status is Status.TIMEOUT and f"time-out of {TIMEOUT:g} s (verifying at n=65)" in report.reason
    edited.save(own, edited.RIGHT)
    assert judged(loop).status is Status.OK


def test_python_is_imported_afresh_and_what_it_raises_is_told(loop: Loop, own: Path) -> None:
    assert judged(loop).status is Status.OK
    for text, told in (
        (edited.PYTHON + "def (", f"{own / '__init__.py'}:"),
        (edited.PYTHON.replace('"plain", 1', '"plane", 1'), "no variant 'plain' (did you mean 'plane'?)"),
        (edited.PYTHON + "raise SystemExit(3)\n", "SystemExit: 3"),
    ):
        (own / "__init__.py").write_text(text)
        report = judged(loop)
        assert report.status is Status.COMPILE_ERROR and told in report.reason, report.reason
    raising = edited.PYTHON.replace("    def launch(self):\n", "    def launch(self):\n        1 / 0\n", 1)
    (own / "__init__.py").write_text(raising)
    report = judged(loop)
    assert report.status is Status.CRASHED and "division" in report.reason and "1 / 0" in report.log
    (own / "__init__.py").write_text(edited.PYTHON.replace("self.n // 64), 64", "self.n // 32), 32"))
    report = judged(loop)
    assert report.status is Status.OK and report.before, report.reason


def test_a_save_is_seen_when_it_is_whole(loop: Loop, own: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Loop, "_judge", lambda *_: Report())
    loop.round()
    saves = iter(["y[i] = 1.0f;", "y[i] = 12.0f;", "", ""])  # another state at each poll, then the same

    def save(_: float) -> None:
        if line := next(saves):
            edited.save(own, line)

    monkeypatch.setattr("perfport.untimed.dev.time.sleep", save)
    loop.wait()
    assert next(saves, None) in ("", None)
    (own / "notes.txt").write_text("nobody watches this")
    (own / "new.py").write_text("")
    assert loop.round().changed == ("kernels/scale.cl", "new.py")
