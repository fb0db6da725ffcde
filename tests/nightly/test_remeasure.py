"""What is measured again: read back where it is stored, refused where it cannot be as it was."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import report_data as data
from check_data import VARIANTS, case, store
from commands import experiment

from perfport.model.errors import InfrastructureError
from perfport.model.record import Record
from perfport.nightly import check
from perfport.nightly.base import AgainstRun
from perfport.nightly.check import check_run, suspects
from perfport.nightly.finding import Outcome
from perfport.nightly.remeasure import AGAIN, WORKERS, measure_again, stored
from perfport.store.results import Run


def test_what_was_measured_again_before_takes_part(tmp_path: Path) -> None:
    base = store(tmp_path / "base", [case(variant, seed=1) for variant in VARIANTS])
    run = store(tmp_path / "now", [case(v, 0.0525 if v == "v1" else 0.05, seed=2) for v in VARIANTS], 1)
    assert stored(run) == {}
    first = check_run(run, AgainstRun(base, run))
    (suspect,) = suspects(first, WORKERS)
    assert suspect.identity.variant == "v1" and first.of(Outcome.SLOWER) and not first.remeasured
    again = case("v1", 0.05, seed=7, workers=WORKERS).model_copy(update={"key": suspect.key})
    store(run.folder / AGAIN, [again], 1)
    second = check_run(run, AgainstRun(base, run))
    assert second.remeasured and not second.of(Outcome.SLOWER)
    assert sorted(found.again for found in second.findings) == [0] * (len(VARIANTS) - 1) + [WORKERS]


def test_a_case_that_cannot_be_measured_as_it_was_is_refused(tmp_path: Path) -> None:
    run = data.store(tmp_path / "run", [data.record("v")])
    experiment(run.folder)
    with pytest.raises(InfrastructureError, match=r"1 cases cannot be measured again as they were \(v\)"):
        measure_again(run, run.records, [], [], ["perfport"])
    assert not (run.folder / AGAIN).exists()


def test_controls_are_measured_beside_the_suspects(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    base = store(tmp_path / "base", [case(variant, seed=1) for variant in VARIANTS])
    run = store(tmp_path / "now", [case(v, 0.0525 if v == "v1" else 0.05, seed=2) for v in VARIANTS], 1)
    asked: list[str] = []

    def measured_again(run: Run, wanted: Sequence[Record], *_: Any) -> dict[str, Record]:
        asked.extend(record.identity.variant for record in wanted)
        hour = 1.04  # the machine is slower by now, and so is every case
        return {r.key: case(r.identity.variant, 0.05 * hour, seed=7, workers=WORKERS) for r in wanted}

    monkeypatch.setattr(check.discovery, "discover", list)
    monkeypatch.setattr(check, "measure_again", measured_again)
    judgement = check_run(run, AgainstRun(base, run), remeasure=True)
    assert asked[0] == "v1" and sorted(asked) == sorted(VARIANTS)
    assert judgement.remeasured and not judgement.of(Outcome.SLOWER)
    calm = check_run(base, AgainstRun(base, base), remeasure=True)
    assert not calm.remeasured and len(asked) == len(VARIANTS), "without a suspect nothing is measured"
