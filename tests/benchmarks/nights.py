"""A history of real nights, made by the commands of the shipped workflow: run by hand, on a quiet machine.

    python tests/benchmarks/nights.py cpu [--nights 5] [--experiment FILE] [--results FOLDER] [--reports FOLDER]

Every night is the job ``cpu`` (or ``gpu``) of .github/workflows/nightly.yml, step by step, but for what it installs;
the nights follow each other at once, in a folder of their own. The history goes to results/committed/nights/JOB, its
page to reports/committed/nights-JOB.html; nights-JOB.md beside it tells each night's exit codes and the first line of
its summary.
Further nights are added to those that lie there. A night of ``nightly`` takes some 7 minutes on an H200, and 20 on two
CPU cores for each OpenCL runtime.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import yaml

from perfport.nightly.history import History

ROOT = Path(__file__).parents[2]
WORKFLOW = ROOT / ".github" / "workflows" / "nightly.yml"
#: What the services do beside, and what sets a machine up.
LEFT_OUT = ("Install", "Summary")
PROGRAM = f'perfport() {{ "{sys.executable}" -m perfport.cli "$@"; }}\n'


def arguments() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("job", choices=("cpu", "gpu"))
    parser.add_argument("--nights", type=int, default=5)
    parser.add_argument("--experiment", type=Path, default=ROOT / "experiments" / "nightly.yaml")
    parser.add_argument("--results", type=Path, default=ROOT / "results" / "committed" / "nights")
    parser.add_argument("--reports", type=Path, default=ROOT / "reports" / "committed")
    return parser.parse_args()


def steps(job: str) -> Iterator[tuple[str, str]]:
    """Yield name and script of the steps of a job."""
    for step in yaml.safe_load(WORKFLOW.read_text())["jobs"][job]["steps"]:
        if "run" in step and step["name"] not in LEFT_OUT:
            yield step["name"], step["run"]


def night(job: str, folder: Path) -> dict[str, int]:
    """Run the steps of a job in a folder; returns their exit codes. As there, a step that fails ends none after it."""
    shutil.rmtree(folder / "results", ignore_errors=True)
    service = {"GITHUB_SERVER_URL": "https://github.com", "GITHUB_REPOSITORY": "OWNER/perfport"}
    codes = {}
    for name, script in steps(job):
        command = ["bash", "-e", "-o", "pipefail", "-c", PROGRAM + script]
        codes[name] = subprocess.run(command, cwd=folder, env={**os.environ, **service}, check=False).returncode
    return codes


def told(codes: dict[str, int], folder: Path) -> str:
    """Return the row of a night: when it began, exit codes, the first line of its summary."""
    latest = History(folder / "history").nights[-1]
    summary = (folder / "check.md").read_text().partition("\n")[0].removeprefix("# ")
    ends = ", ".join(f"{name} {code}" for name, code in codes.items() if name in ("Measure", "Judge"))
    return f"| {latest.started[:16]} | `{latest.commit[:12]}` | {len(latest.series)} | {ends} | {summary} |"


def main() -> None:
    """Run the nights, and keep history, page and table."""
    given = arguments()
    kept, table = given.results / given.job, given.reports / f"nights-{given.job}.md"
    head = [
        f"# Nights of the job `{given.job}`, by the commands of the shipped workflow", "",
        f"`python tests/benchmarks/nights.py {given.job}` measured them one after the other; times are in the",
        f"[history's page](nights-{given.job}.html) (measured). Yellow (exit code 6 of `check`) is a warning there,",
        "and 0 (docs/nightly.md).", "",
        "| began (UTC) | commit | cases | exit codes of the steps | first line of the summary |",
        "| --- | --- | --- | --- | --- |",
    ]  # fmt: skip
    rows = table.read_text().splitlines()[len(head) :] if table.exists() else []
    with tempfile.TemporaryDirectory(prefix="nights-") as name:
        folder = Path(name)
        (folder / "experiments").mkdir()
        shutil.copy(given.experiment, folder / "experiments" / "nightly.yaml")
        if kept.exists():
            shutil.copytree(kept, folder / "history")
        for _ in range(given.nights):
            rows.append(told(night(given.job, folder), folder))
            shutil.copytree(folder / "history", kept, dirs_exist_ok=True)
            given.reports.mkdir(parents=True, exist_ok=True)
            shutil.copy(folder / "history.html", given.reports / f"nights-{given.job}.html")
            table.write_text("\n".join([*head, *rows]) + "\n")
            print(rows[-1], flush=True)


if __name__ == "__main__":
    main()
