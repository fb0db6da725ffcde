"""Which results were measured with code that has changed since."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

from ...run.keys import harness_digest
from ...run.sources import Age, Verdict, age
from ...store.collection import Collection
from ...store.ratios import is_measured
from ...store.results import Run
from ...workload import Workload
from ..parts.markdown import code, join, table, text
from ..parts.view import View

READING = (
    "A result is *stale* where a file that its variant is made of, or the code that measures, is not what it was; the "
    "file may have changed in what decides no time. *unknown*: neither the run nor the history of a repository here "
    "tells. *current* with a reason: code has changed, and the change is declared to be none for results "
    "(`comparable.yaml`: of the measuring code in `suite/perfport/run`, of others in the workload's folder). Cases "
    "that have no result are left out."
)


def view(collection: Collection, workloads: Mapping[str, Workload] | None = None) -> View:
    """Return the age of every result of a collection, by run and by what has changed."""
    verdicts = [
        (case, age(case.run, case.record.identity, workloads)) for case in collection.cases if is_measured(case.record)
    ]
    counts = {
        run.folder: Counter(verdict.age for case, verdict in verdicts if case.run is run) for run in collection.runs
    }
    runs = [
        [code(run.folder.name), *(str(counts[run.folder][each] or "") for each in Age), _commit(run)]
        for run in collection.runs
        if counts[run.folder]
    ]
    groups: dict[tuple[str, str, Verdict], Counter[str]] = {}
    for case, verdict in verdicts:
        if verdict.age is not Age.CURRENT or verdict.why:
            key = (case.run.folder.name, f"{case.subject.workload}/{case.subject.problem}", verdict)
            groups.setdefault(key, Counter())[case.record.identity.variant] += 1
    listed = [
        [
            code(run), code(problem), ", ".join(map(code, sorted(variants))), str(variants.total()), verdict.age.value,
            text(verdict.why, 400),
        ]
        for (run, problem, verdict), variants in groups.items()
    ]  # fmt: skip
    stale = sum(verdict.age is Age.STALE for _, verdict in verdicts)
    head = f"{stale} of {len(verdicts)} results were measured with code that has changed since."
    present = f"The measuring code is {code(harness_digest())}."
    blocks = ["# Age of results", head, present, READING, table(["run", *Age, "commit"], runs, "lrrrl")]
    if listed:
        headers = ["run", "problem", "variants", "results", "age", "what has changed, or is declared to be no change"]
        blocks.append(table(headers, listed, "lllrll"))
    rows: list[dict[str, Any]] = [
        {
            "run": case.run.folder.name, "workload": case.subject.workload, "problem": case.subject.problem,
            "variant": case.record.identity.variant, "setting": collection.preset(case.subject),
            "device": collection.label(case.site), "age": verdict.age.value, "why": verdict.why,
            "record": case.record.key,
        }
        for case, verdict in verdicts
    ]  # fmt: skip
    return View("Age of results", join(blocks), rows)


def ages(collection: Collection, run: Run) -> str:
    """Return how many of a run's results in a collection are of code that has changed; empty where nobody can tell."""
    cases = [case for case in collection.cases if case.run is run and is_measured(case.record)]
    counts = Counter(age(run, case.record.identity).age for case in cases)
    return f"{counts[Age.STALE]} of {len(cases)}" if counts[Age.STALE] or counts[Age.CURRENT] else ""


def _commit(run: Run) -> str:
    commit = run.environment.get("commit") or {}
    return code(str(commit.get("hash") or "")[:12]) + (" (uncommitted changes)" if commit.get("dirty") else "")
