"""Cheats, through the command as users have it: none may be ranked, and the honest variants beside them are."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import report_data as data
from cheat_runs import (
    ADVERSARY,
    END,
    HONEST,
    START,
    Verdicts,
    cheats,
    columns,
    experiment,
    merged,
    rows,
    verdict,
    write,
)

from perfport.backend import OpenDevice
from perfport.model.record import Failure, Record, Status
from perfport.store.results import Run

pytestmark = [pytest.mark.minutes, pytest.mark.timeout(1200)]  # the first test waits for the run

PAGE = Path(__file__).parents[2] / "docs" / "verification.md"
FAILED = {Status.WRONG, Status.IMPOSSIBLE}
REFUSED = {Status.UNSUPPORTED, Status.CRASHED, Status.COMPILE_ERROR}
PROBLEMS = sorted({cheat.problem for cheat in cheats().values()})

#: What is ranked by the time of its whole work: a timed execution starts from poisoned outputs, and from other inputs
#: than the one before.
HONEST_NOW = {"looks_for_poison", "replays_by_checksum", "skips_written"}
#: How often what was contended is measured before that is the verdict.
ATTEMPTS = 4


@pytest.fixture(scope="module")
def verdicts(
    opencl_infos: Any, perfport: Any, no_ceilings: dict[str, str], tmp_path_factory: Any, request: Any
) -> Verdicts:
    """One run of every cheat on every OpenCL device: its records by device, problem and variant."""
    folder: Path = tmp_path_factory.mktemp("cheats")
    file, out = experiment(folder, cheats()), folder / "out"
    command = ("run", file, "--out", out, "--workloads", ADVERSARY)
    again: tuple[str, ...] = ()
    for _ in range(ATTEMPTS):
        done = perfport(*command, *again, env=no_ceilings, cwd=folder, timeout=1200)
        assert done.returncode in (0, 3, 4), done.stderr
        if all(record.status is not Status.CONTENDED for record in Run(out).records):
            break
        again = ("--resume", "--retry", "contended")  # the tests beside this one have disturbed it
    identities = [(record.identity, record) for record in Run(out).records]
    records = {(each.devices[0], each.problem, each.variant): record for each, record in identities}
    if page := request.config.getoption("--verdicts"):
        write(Path(page), records)
    return records


def caught(record: Record) -> bool:
    """Whether a guard has seen a cheat; one that only fell over something else has not been refused."""
    return record.status in FAILED or (record.status in REFUSED and "refused" in verdict(record))


@pytest.mark.parametrize("name", cheats())
def test_a_cheat_is_not_ranked(verdicts: Verdicts, opencl: OpenDevice, name: str) -> None:
    record = verdicts[opencl.info.id, cheats()[name].problem, name]
    assert caught(record) != (name in HONEST_NOW), verdict(record)


@pytest.mark.parametrize("problem", PROBLEMS)
def test_honest_variants_are_measured_beside_them(verdicts: Verdicts, opencl: OpenDevice, problem: str) -> None:
    record = verdicts[opencl.info.id, problem, HONEST]
    assert record.status.measured, verdict(record)


@pytest.mark.parametrize(
    ("reason", "seen"), [("INVALID_KERNEL_NAME", False), ("a launch on another queue is refused", True)]
)
def test_a_crash_alone_is_no_refusal(reason: str, seen: bool) -> None:
    crashed = {"status": Status.CRASHED, "failure": Failure(reason=reason)}
    assert caught(data.record("any").model_copy(update=crashed)) == seen


def test_what_passes_names_cheats() -> None:
    assert cheats().keys() >= HONEST_NOW


@pytest.mark.parametrize("folder", sorted(ADVERSARY.glob("within_*")), ids=lambda folder: folder.name)
def test_a_cheat_has_a_file_of_its_name(folder: Path) -> None:
    reach = folder.name.removeprefix("within_")
    files = {path.stem for path in folder.glob("*.py")} - {"__init__"}
    assert files == {name for name, cheat in cheats().items() if cheat.reach == reach}


def test_the_page_has_the_verdicts(verdicts: Verdicts) -> None:
    page = columns(PAGE.read_text().partition(START)[2].partition(END)[0].splitlines())
    here = columns(rows(verdicts))
    shared = page.keys() & here.keys()  # a machine may have other devices
    assert {head: page[head] for head in shared} == {head: here[head] for head in shared}
    assert {"cheat", "what it does", "seen", "guard"} <= shared


def test_columns_of_other_devices_stay_on_the_page() -> None:
    page = {"cheat": ["---", "`old`", "`gone`"], "guard": ["---", "a", "b"], "`cuda`": ["---", "wrong", "**ranked**"]}
    here = {"cheat": ["---", "`new`", "`old`"], "guard": ["---", "c", "d"], "`pocl`": ["---", "wrong", "wrong"]}
    kept = {"`cuda`": ["---", "not run", "wrong"]}
    assert merged(page, here) == {**here, **kept}
    assert list(merged(page, here)) == ["cheat", "guard", "`cuda`", "`pocl`"]
