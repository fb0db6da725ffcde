"""Wrong inputs of users and of contributors: each ends at once with its exit code and a message that says what to mend.

None of them looks for a device, runs anything or leaves a file behind.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn

import pytest
import report_data as data
from commands import Cli, experiment
from minimal_workload import MINIMAL

from perfport.nightly.history import add
from perfport.store.results import RECORDS

GDN = Path(__file__).parents[2] / "results" / "committed" / "cpu-gdn"
Prepare = Callable[[Path], list[Any]]
OWN = "TMP"  # stands for the folder of the test in arguments and messages


def given(*arguments: Any) -> Prepare:
    """The arguments alone."""
    return lambda folder: list(arguments)


def file(text: str, *more: Any, **change: Any) -> Prepare:
    """``run`` of an experiment file with these lines added, or these changes."""

    def prepare(folder: Path) -> list[Any]:
        path = experiment(folder, **change)
        path.write_text(path.read_text() + text)
        return ["run", path, *more]

    return prepare


def a_folder_of_that_name(own: Path) -> list[Any]:
    """An experiment whose report's place a folder has."""
    (own / "folder.md").mkdir()
    return file("", report={"path": "folder.md"})(own)


def workload(old: str, new: str, *, module: str = "") -> Prepare:
    """``list`` of a workload that is fine but for one change; ``module`` is written beside it."""

    def prepare(folder: Path) -> list[Any]:
        (folder / "mine").mkdir()
        assert old in MINIMAL
        (folder / "mine" / "__init__.py").write_text(MINIMAL.replace(old, new, 1))
        if module:
            (folder / "mine" / "extra.py").write_text(module)
        return ["list", "mine", "--workloads", folder / "mine"]

    return prepare


def beside(name: str, text: str, *arguments: Any) -> Prepare:
    """Arguments, with a file beside."""

    def prepare(folder: Path) -> list[Any]:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return list(arguments)

    return prepare


def history(*arguments: Any) -> Prepare:
    """``history`` of one night."""

    def prepare(folder: Path) -> list[Any]:
        add(data.store(folder / "runs" / "one", [data.record("a"), data.record("b")]), folder / "history")
        return ["history", "--in", folder / "history", *arguments]

    return prepare


def stored(change: Callable[[list[dict[str, Any]]], Any]) -> Prepare:
    """``validate`` of two runs, ``bad`` with a change of its records and ``good`` as stored."""

    def prepare(folder: Path) -> list[Any]:
        records = [data.record("a", 0.02), data.record("b", 0.04)]
        for name in ("good", "bad"):
            data.store(folder / "runs" / name, records, {**data.environment(), "planned": 2})
        path = folder / "runs" / "bad" / RECORDS
        content = [json.loads(line) for line in path.read_text().splitlines()]
        change(content)
        path.write_text("".join(f"{json.dumps(line)}\n" for line in content))
        return ["validate", folder / "runs"]

    return prepare


def put(*path: Any, value: Any) -> Callable[[list[dict[str, Any]]], None]:
    """Set a value in the first record."""

    def change(records: list[dict[str, Any]]) -> None:
        at: Any = records[0]
        for part in path[:-1]:
            at = at[part]
        at[path[-1]] = value(at[path[-1]]) if callable(value) else value

    return change


def torn(folder: Path) -> list[Any]:
    """``validate`` of a run whose last line is cut."""
    arguments = stored(lambda records: None)(folder)
    path = folder / "runs" / "bad" / RECORDS
    path.write_text(path.read_text()[:-40])
    return arguments


SUMMARY = ("timing", "summary", "span")
BAD = f"{OWN}/runs/bad/{RECORDS}"
CUT = f"{BAD}: expected records of the 2 planned cases, got 1: cut off"
TORN = f"{BAD}:2: torn"
MINE = f"workload 'mine': {OWN}/mine/__init__.py:"
MILLIONS = {"points": list(range(100, 1100)), "gamma": [n / 1000 for n in range(1, 1001)], "mean": [1, 2, 3]}
WRONG: dict[str, tuple[Prepare, int, list[str]]] = {
    # Keys given twice.
    "key twice": (file("name: again\n"), 2, [f"{OWN}/experiment.yaml:", "key 'name' is given twice, first on line"]),
    "key twice in an entry": (
        beside(
            "e.yaml", "name: x\nexperiments:\n- workload: gdn\n  problem: a\n  workload: b\n", "run", f"{OWN}/e.yaml"
        ),
        2,
        [f"{OWN}/e.yaml:5: key 'workload' is given twice, first on line 3; expected each key once"],
    ),
    "key twice in a profile": (
        beside("p.yaml", "name: x\nname: y\n", "verify", "--profile", f"{OWN}/p.yaml"),
        2,
        [f"--profile: {OWN}/p.yaml:2: key 'name' is given twice, first on line 1"],
    ),
    "key twice in claims": (
        beside("own/claims.yaml", "- id: a\n  id: b\n", "claims", GDN, "--workloads", f"{OWN}/own"),
        2,
        [f"{OWN}/own/claims.yaml:2: key 'id' is given twice, first on line 1"],
    ),
    "not YAML in --set": (
        given("count", "gdn", "--preset", "tiny", "--set", "n=[1"),
        2,
        ["--set n=[1: not valid YAML"],
    ),
    # Names, values and sizes of an experiment.
    "unknown profile": (
        file("", study={"profiles": ["native", "hd7971"]}),
        2,
        [
            f"{OWN}/experiment.yaml: experiments[0].profiles[1]: unknown device profile 'hd7971'",
            "(did you mean 'hd7970'?)",
        ],
    ),
    "unknown profile of verify": (
        given("verify", "--profile", "hd7971"),
        2,
        ["--profile: unknown", "'hd7971'", "'hd7970'"],
    ),
    "unknown profile of count": (
        given("count", "--profile", "hd7971"),
        2,
        ["--profile: unknown", "'hd7971'", "'hd7970'"],
    ),
    "millions of cases": (
        file("", study={"parameters": MILLIONS, "variants": ["image"]}),
        2,
        [
            "experiments[0]: 1,000 parameters.gamma x 3 parameters.mean x 1,000 parameters.points; 3,000,000 cases",
            "in all, expected at most 100,000 in one experiment",
        ],
    ),
    "seed below zero": (
        given("run", "quick", "--seed", "-4"),
        2,
        ["--seed: expected an integer from 0 to 2147483647, got -4"],
    ),
    "seed too large": (given("run", "quick", "--seed", 2**31), 2, ["--seed: expected", "got 2147483648"]),
    "seed of verify": (given("verify", "--seed", "-4"), 2, ["--seed: expected", "got -4"]),
    "seed of count": (given("count", "--seed", "-4"), 2, ["--seed: expected", "got -4"]),
    "no such retry": (
        given("run", "quick", "--resume", "--retry", "contendet"),
        2,
        ["--retry: expected 'failed' or 'contended', got 'contendet' (did you mean 'contended'?)"],
    ),
    "retry without resume": (given("run", "quick", "--retry", "contended"), 2, ["--retry needs --resume"]),
    "resume of nothing": (
        given("run", "quick", "--resume", "--out", f"{OWN}/none"),
        2,
        [f"--resume --out {OWN}/none: no run is here (expected a folder with records.jsonl)"],
    ),
    # Where results go.
    "report below a file": (
        file("", report={"path": "experiment.yaml/report.md"}),
        4,
        [f"{OWN}/experiment.yaml: report.path: experiment.yaml/report.md cannot be written", "is not a folder"],
    ),
    "report is a folder": (
        a_folder_of_that_name,
        4,
        ["report.path: folder.md cannot be written (expected a file, and a folder is here)"],
    ),
    "report is no page": (
        file("", report={"path": "."}),
        2,
        ["report.path: expected a markdown file below the current folder, as in 'reports/name.md'"],
    ),
    "results below a file": (
        beside("f", "", "run", "quick", "--out", f"{OWN}/f/out"),
        4,
        [f"--out: {OWN}/f/out cannot be written ({OWN}/f is"],
    ),
    **{
        f"output of {arguments[0]}": (
            beside("f", "", *arguments, f"{OWN}/f/x"),
            4,
            [f"{arguments[-1]}: {OWN}/f/x cannot be written ({OWN}/f is not a"],
        )
        for arguments in (
            ("table", "nowhere", "--output"),
            ("report", "nowhere", "--output"),
            ("claims", "nowhere", "--output"),
            ("portability", "nowhere", "--export"),
            ("convergence", "--output"),
            ("check", "nowhere", "--junit"),
            ("export", "nowhere", "--format", "p3", "--output"),
            ("ceilings", "--out"),
            ("count", "--out"),
            ("history", "--html"),
            ("crosstuning", "nowhere", "--output"),
            ("compare", "a", "b", "--output"),
        )
    },
    "no such format": (
        given("check", "nowhere", "--baseline", "nowhere", "--format", "pdf"),
        2,
        ["--format: 'pdf' is not one of markdown, csv, json, html"],
    ),
    # Filters that match nothing.
    "history": (
        history("--variant", "nosuch"),
        2,
        [f"--variant: no variant in {OWN}/history contains 'nosuch'", "there are: "],
    ),
    "history, device": (
        history("--device", "nosuch"),
        2,
        ["--device: no device in", "contains 'nosuch'", "there are: "],
    ),
    "table": (
        given("table", GDN, "--variant", "navie"),
        2,
        ["--variant: no variant in", "contains 'navie' (did you mean 'naive'?); there are: "],
    ),
    "claims": (
        given("claims", GDN, "--problem", "nosuch"),
        2,
        ["--problem: no problem in the claims contains 'nosuch'", "there are: ", "gdn_gamma_gradient"],
    ),
    "claims, workload": (
        given("claims", GDN, "--workload", "gnd"),
        2,
        ["--workload: no workload in the claims contains 'gnd' (did you mean 'gdn'?)"],
    ),
    "compare": (
        given("compare", "naive", "fused", "--results", GDN, "--problem", "nosuch"),
        2,
        ["--problem: no problem in", "contains 'nosuch'", "there are: "],
    ),
    "convergence": (given("convergence", "--workload", "nosuch"), 2, ["--workload", "'nosuch'"]),
    "run": (given("run", "quick", "-b", "nosuch"), 2, ["-b", "'nosuch'", "experiments/quick.yaml"]),
    # Results that are not whole.
    "truncated": (
        stored(lambda records: records.pop()),
        2,
        [CUT],
    ),
    "torn": (torn, 2, [TORN, CUT]),
    "negative median": (
        stored(put(*SUMMARY, "median", value=lambda median: -median)),
        2,
        [f"{BAD}:1: timing.summary.span.median: input should be greater than or equal to 0, got -0.0"],
    ),
    "not finite": (
        stored(put("metric", "value", value=float("nan"))),
        2,
        [f"{BAD}:1: metric.value: input should be a finite number, got nan"],
    ),
    "interval": (
        stored(put(*SUMMARY, "ci_high", value=1e-9)),
        2,
        [f"{BAD}:1: timing.summary.span: expected ci_low <= median <= ci_high, got median 0.0", "above ci_high 1e-09"],
    ),
    "bound": (
        stored(put("problem_bound", "share", "low", value=9.0)),
        2,
        [f"{BAD}:1: problem_bound.share: expected low <= value <= high, got low 9 above value"],
    ),
    "samples": (
        stored(put("timing", "span", value=lambda samples: samples[:-1])),
        2,
        [f"{BAD}:1: timing: span: expected 15 samples, as in its summary, got 14"],
    ),
    "rounds": (
        stored(put("timing", "rounds", value=[1])),
        2,
        [f"{BAD}:1: timing: rounds and workers: expected one entry for each of 15"],
    ),
    "no timing": (
        stored(lambda records: records[0].pop("timing")),
        2,
        [f"{BAD}:1: timing: expected samples with status 'ok', got none"],
    ),
    "two faults": (
        stored(lambda records: [one.update(status="fine") for one in records]),
        2,
        [f"{BAD}:1: status: ", f"{BAD}:2: status: ", "got 'fine'", f"{OWN}/runs: 1 of 2 runs are not valid"],
    ),
    # A contributor's mistakes.
    "two variants of one name": (
        workload('"b", "control"', '"a", "control"'),
        2,
        [MINE, "class B: name: 'a' is also that of", ": class A, of the same"],
    ),
    "two problems of one name": (
        workload("class Base(", "class Q(P):\n    pass\n\n\nclass Base("),
        2,
        [MINE, "class Q: name: 'p' is also that of"],
    ),
    "wrong role": (
        workload('"control"', '"controll"'),
        2,
        [MINE, "class B: role: expected one of rung, control, beyond, peer, got 'controll' (did you mean 'control'?)"],
    ),
    "no problem": (
        workload("    problem = P\n", ""),
        2,
        [MINE, "class A: problem: expected a Problem class, got None"],
    ),
    "problem of another workload": (
        workload("    problem = P\n", "    from perfport.workloads.gdn.problems import GammaGradient as problem\n"),
        2,
        [MINE, "class A: problem: expected one of this workload (p), got 'gdn_gamma_gradient'"],
    ),
    "one check size": (
        workload(', {"n": 5})', ",)"),
        2,
        [MINE, "class P: check_sizes: expected at least two different ones, got [{'n': 3}]"],
    ),
    "equal check sizes": (
        workload('{"n": 5}', '{"n": 3}'),
        2,
        [MINE, "class P: check_sizes: expected at least two different"],
    ),
    "no metric": (
        workload('    metric = Metric("t", "s", "lower", "d")\n', ""),
        2,
        [MINE, "class P: metric: expected a Metric, got None"],
    ),
    "direction of the metric": (
        workload('"lower"', '"less"'),
        2,
        [MINE, "class P: metric: direction: expected", "'less'"],
    ),
    "no presets": (workload('{"tiny": {"n": 9}}', "{}"), 2, [MINE, "class P: presets: expected", "got none"]),
    "a preset that does not fit": (
        workload('{"tiny": {"n": 9}}', '{"tiny": {"m": 9}}'),
        2,
        [MINE, "class P: presets['tiny']: n: Field required"],
    ),
    "no name": (workload('    name = "a"\n', ""), 2, [MINE, "class A: name: expected a text, got ''"]),
    "no launch": (
        workload("    def launch(self): ...\n", ""),
        2,
        [MINE, "class A: launch: expected a method of this name"],
    ),
    "syntax": (
        workload("class P(", "class P[:"),
        2,
        [f"workload 'mine' does not import: {OWN}/mine/__init__.py:8: SyntaxError"],
    ),
    "import of another module": (
        workload("", "", module="import os\n\n\nimport no_such_module\n"),
        2,
        [f"workload 'mine' does not import: {OWN}/mine/extra.py:4: ModuleNotFoundError", "'no_such_module'"],
    ),
    "exit at import": (
        workload("", "", module="raise SystemExit(0)\n"),
        2,
        [f"does not import: {OWN}/mine/extra.py:1: SystemExit: 0"],
    ),
}


@pytest.mark.parametrize(("prepare", "code", "expected"), WRONG.values(), ids=WRONG)
def test_wrong_inputs(
    main: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, prepare: Prepare, code: int, expected: list[str]
) -> None:
    def refuse() -> NoReturn:
        raise AssertionError("a device was looked for")

    monkeypatch.setattr("perfport.machine.discovery.discover", refuse)
    monkeypatch.chdir(tmp_path)
    arguments = [str(one).replace(OWN, str(tmp_path)) for one in prepare(tmp_path)]
    before = files(tmp_path)
    found, out, err = main(*arguments, discover=False)
    assert found == code, out + err
    assert [part for part in expected if part.replace(OWN, str(tmp_path)) not in err] == [], err
    assert "Traceback" not in err and files(tmp_path) == before
    if arguments[0] == "validate":
        assert f"{tmp_path}/runs/good: 2 records, valid" in out, "the next run is checked, too"
        assert ("planned cases" in err) == (expected[0] in (CUT, TORN)), "a bad line is there"


def files(folder: Path) -> set[Path]:
    """The files below a folder but those that Python compiles."""
    return {path for path in folder.rglob("*") if path.is_file() and path.suffix != ".pyc"}


def test_the_workload_that_is_changed_is_fine_itself(main: Cli, tmp_path: Path) -> None:
    main(*workload("", "")(tmp_path))
    code, out, err = main(*["list", "mine", "--workloads", tmp_path / "mine"])
    assert code == 0 and "a" in out, err
    shutil.rmtree(tmp_path / "mine")
