"""Claims, portability, tuning, ceilings and nights as the page gets them."""

from __future__ import annotations

import json
from pathlib import Path

import history_data
import numpy as np
import report_data as data

from perfport.judge.claims import Claim, evaluate
from perfport.judge.crosstuning import slowdowns
from perfport.judge.portability import portability
from perfport.nightly.history import History
from perfport.report.parts.ladder import collected
from perfport.report.viewer import answers
from perfport.store.collection import Collection
from perfport.untimed.convergence import ALL, Convergence

CLAIM = Claim.model_validate({
    "id": "local", "statement": "It is faster.", "source": "s", "problem": "rows", "compare": "speedup",
    "subject": {"variant": "local_memory"}, "reference": {"variant": "row_major"}, "stated": 2,
})  # fmt: skip


def collection(folder: Path) -> Collection:
    """Return the demonstration, with one variant at another device's parameters."""
    tuned = data.record("local_memory", 0.03, rung=5, profile="hd7970", key="f" * 16)
    return Collection([data.store(folder, [*data.demonstration(), tuned])])


def test_claims_have_threshold_stated_number_and_intervals(tmp_path: Path) -> None:
    held = collection(tmp_path)
    (claim,) = answers.claims(evaluate({"demo": [CLAIM]}, held), held)
    assert (claim["low"], claim["high"], claim["stated"]) == (1.5, None, 2)
    verdicts = {verdict["device"]: verdict for verdict in claim["verdicts"]}
    _, value, low, high, keys = verdicts[data.INTEL]["evidence"][0]
    assert verdicts[data.INTEL]["verdict"] == "holds" and 4 < low <= value <= high < 4.6 and len(keys) == 2
    json.dumps(claim, allow_nan=False)


def test_everything_else_is_json_without_infinities(tmp_path: Path) -> None:
    held = collection(tmp_path)
    metrics = answers.portability(portability(held, held.places), held)
    assert {entry["problem"] for entry in metrics} >= {"rows", "argmin"} and metrics[0]["platforms"]
    (cell,) = [cell for cell in answers.tuning(slowdowns(held), held) if cell["profile"] == "hd7970"]
    assert cell["key"] == "f" * 16 and cell["slowdown"][0] > 1.9
    roofs = {entry["device"]: entry["entries"] for entry in answers.ceilings(collected(held))}
    assert ["DRAM read", "dram_read"] in [entry[:2] for entry in roofs[data.POCL]]
    (run,) = answers.runs(held)
    assert run["records"] == len(held.runs[0].records) and run["folder"].endswith(tmp_path.name)
    json.dumps([metrics, cell, roofs, run], allow_nan=False)


def test_convergence_of_problems_alone() -> None:
    lines = {"opencl": 9, "cuda": 8}
    entries = [
        Convergence(workload="demo", problem=problem, variant=variant, lines=lines, common=7, total=10, convergence=0.6)
        for problem, variant in (("rows", "a"), ("rows", ALL), (ALL, ALL))
    ]
    assert answers.converged(entries) == [{"workload": "demo", "problem": "rows", "share": 0.7}]


def test_what_got_slower_in_the_last_night_comes_first(tmp_path: Path) -> None:
    for number in range(9):
        times = np.array([0.01, 0.02, 0.03])
        history_data.write_night(
            tmp_path, number, times * ([1, 1.3, 1] if number == 8 else 1), failed=[2] * (number == 8)
        )
    shown = answers.history(History(tmp_path))
    assert shown and len(shown["nights"]) == 9 and shown["of"] == 3
    first = shown["series"][0]
    assert "variant_1" in first["name"] and abs(first["change"] - 1.3) < 1e-6 and first["nights"][-1] == 8
    failed = next(series for series in shown["series"] if "variant_2" in series["name"])
    assert failed["time"][-1] is None and failed["status"][-1] == "crashed"
    json.dumps(shown, allow_nan=False)
    assert answers.history(None) is None
