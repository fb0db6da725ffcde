"""The workflow files of GitHub Actions and GitLab CI: valid by their schemas, and their commands do what they say."""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import nights
import pytest
import yaml
from code_repository import git, needs_git, of_this_code, replaced
from typer.main import get_command

from perfport.cli.app import app
from perfport.model.device import DeviceInfo

ROOT = Path(__file__).parents[2]
GITHUB, GITLAB = ROOT / ".github" / "workflows" / "nightly.yml", ROOT / ".gitlab-ci.yml"
REQUEST = GITHUB.with_name("pull-request.yml")
TINY = {
    "name": "nightly",
    "devices": ["all"],
    "measurement": {"min_samples": 3, "max_samples": 3, "time_budget": 0.05, "cache": "warm", "max_noise": 1.0},
    "experiments": [{"workload": "svm_rbf", "problem": "rbf_rows", "presets": ["tiny"], "variants": ["column_major"]}],
}


def github(job: str, file: Path = GITHUB) -> str:
    """The script of a job: its steps' commands."""
    steps = yaml.safe_load(file.read_text())["jobs"][job]["steps"]
    return "\n".join(step["run"] for step in steps if "run" in step)


def gitlab(job: str) -> str:
    """The script of a job with that of the hidden job that it extends."""
    content = yaml.safe_load(GITLAB.read_text())
    variables = [f"{name}={value}" for name, value in content[job]["variables"].items()]
    script = content[content[job]["extends"]]["script"]
    return "\n".join([*variables, *content[job]["before_script"], *script])


SCRIPTS = {f"{service.__name__}-{job}": service(job) for service in (github, gitlab) for job in ("cpu", "gpu")}
REQUESTS = {f"github-{job}": github(job, REQUEST) for job in ("cpu", "gpu")}
REQUESTS |= {f"gitlab-{job}": gitlab(f"request-{job}") for job in ("cpu", "gpu")}


KNOWN: Any = get_command(app)


def commands(script: str) -> list[str]:
    """The calls of perfport in a script."""
    return [line.strip() for line in script.splitlines() if line.strip().startswith("perfport ")]


@pytest.mark.parametrize(
    ("file", "misspelt", "options"),
    [
        (GITHUB, "runs-on:", ["vendor.github-workflows"]),
        (REQUEST, "runs-on:", ["vendor.github-workflows"]),
        (GITLAB, "when: always", ["vendor.gitlab-ci", "--data-transform", "gitlab-ci"]),
    ],
    ids=["github", "request", "gitlab"],
)
def test_the_schema_accepts_the_file(file: Path, misspelt: str, options: list[str], tmp_path: Path) -> None:
    pytest.importorskip("check_jsonschema")
    command = [sys.executable, "-m", "check_jsonschema", "--builtin-schema", *options]
    done = subprocess.run([*command, file], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    broken = tmp_path / file.name
    broken.write_text(file.read_text().replace(misspelt, f"{misspelt[:-2]}:"))
    assert subprocess.run([*command, broken], capture_output=True, check=False).returncode == 1, (
        "the check sees nothing"
    )


@pytest.mark.parametrize("script", SCRIPTS.values(), ids=SCRIPTS)
def test_every_job_installs_an_extra_and_measures(script: str) -> None:
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    (installed,) = re.findall(r"pip install -e '\.\[(\w+)\]'", script)
    assert installed in extras
    assert [line.split()[1] for line in commands(script)][:4] == ["devices", "run", "check", "history"]


@pytest.mark.parametrize("script", REQUESTS.values(), ids=REQUESTS)
def test_every_request_installs_the_tree_that_git_has(script: str) -> None:
    """A wheel would have no commits to measure."""
    assert re.search(r"pip install -e '\.\[(cpu|cuda)\]'", script)
    assert [line.split()[1] for line in commands(script)] == ["diff"]


@pytest.mark.parametrize("file", [GITHUB, REQUEST], ids=["nightly", "request"])
def test_every_checkout_has_the_commits_before(file: Path) -> None:
    jobs = yaml.safe_load(file.read_text())["jobs"].values()
    checkouts = [step for job in jobs for step in job["steps"] if step.get("uses", "").startswith("actions/checkout@")]
    assert len(checkouts) == len(jobs) and all(step["with"]["fetch-depth"] == 0 for step in checkouts)
    assert yaml.safe_load(GITLAB.read_text())["variables"]["GIT_DEPTH"] == "0"


@pytest.mark.parametrize(
    "script", [*SCRIPTS.values(), *REQUESTS.values()], ids=[*SCRIPTS, *(f"{n}-request" for n in REQUESTS)]
)
def test_every_option_exists(script: str) -> None:
    for line in commands(script):
        words = shlex.split(line.split("||")[0])[1:]
        command = KNOWN.commands[words.pop(0)]
        while words and words[0] in getattr(command, "commands", {}):
            command = command.commands[words.pop(0)]
        options = {name for parameter in command.params for name in (*parameter.opts, *parameter.secondary_opts)}
        assert {word for word in words if word.startswith("-")} <= options, line


@pytest.mark.parametrize("job", ["cpu", "gpu"])
def test_a_history_of_real_nights_is_made_by_the_steps_of_the_job(job: str) -> None:
    made = dict(nights.steps(job))
    assert list(made) == ["Devices", "Measure", "Judge", "Add to the history"]
    assert commands("\n".join(made.values())) == commands(SCRIPTS[f"github-{job}"])


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """A repository with this code in one commit."""
    return of_this_code(tmp_path / "repository")


def execute(script: str, folder: Path, environment: dict[str, str]) -> subprocess.CompletedProcess[str]:
    """Run the script of a job, but for what it installs, as its service does."""
    script = "\n".join(line for line in script.splitlines() if not line.startswith("pip "))
    program = f'perfport() {{ "{sys.executable}" -m perfport.cli "$@"; }}\n'
    environment = {"GITHUB_SERVER_URL": "https://git.example", "GITHUB_REPOSITORY": "a/b", **environment}
    return subprocess.run(
        ["bash", "-e", "-o", "pipefail", "-c", program + script], cwd=folder, env=environment,
        capture_output=True, text=True, timeout=560, check=False,
    )  # fmt: skip


@pytest.mark.parametrize("name", ["github-cpu"])
def test_the_commands_of_the_cpu_job_run(name: str, no_ceilings: dict[str, str], tmp_path: Path) -> None:
    """With a tiny experiment in place of the nightly one; the first night is yellow, which is a warning."""
    (tmp_path / "experiments").mkdir()
    (tmp_path / "experiments" / "nightly.yaml").write_text(yaml.safe_dump(TINY))
    environment = {**no_ceilings, "GITHUB_STEP_SUMMARY": str(tmp_path / "summary.md")}
    done = execute(SCRIPTS[name], tmp_path, environment)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "::warning::# Yellow: no regression found, but only 0 of" in done.stdout
    assert (tmp_path / "check.md").read_text() and (tmp_path / "check.xml").exists()
    assert (tmp_path / "history.html").exists() and len(list((tmp_path / "history").iterdir())) == 1


@pytest.mark.parametrize(("code", "ends", "warns"), [(0, 0, False), (5, 5, False), (6, 0, True), (4, 4, False)])
@pytest.mark.parametrize("step", ["Judge", "Measure both sides in turn"])
def test_yellow_is_a_warning_and_red_a_failure(tmp_path: Path, step: str, code: int, ends: int, warns: bool) -> None:
    """Whatever the command, its exit code is planted."""
    file = GITHUB if step == "Judge" else REQUEST
    (script,) = (
        each["run"] for each in yaml.safe_load(file.read_text())["jobs"]["cpu"]["steps"] if each.get("name") == step
    )
    program = f"perfport() {{ echo '# Verdict' | tee check.md > diff.md; return {code}; }}\n"
    command = ["bash", "-e", "-o", "pipefail", "-c", program + script]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == ends and ("::warning::# Verdict" in done.stdout) is warns


@pytest.mark.minutes
@pytest.mark.timeout(600)
@needs_git
def test_the_commands_of_the_request_run(
    repository: Path, no_ceilings: dict[str, str], opencl_infos: list[DeviceInfo]
) -> None:
    """Really measured: in the request's commit a clock sleeps twenty times as long; another workload is the same."""
    shutil.copytree(repository / "clocks" / "nightly", repository / "workloads" / "nightly")
    clock = {"workload": "nightly", "problem": "double", "variants": ["clock_b"], "devices": [opencl_infos[0].id]}
    clock["parameters"] = {"n": 64, "rounds": 1, "seconds": 0.01}  # type: ignore[assignment]
    content = {**TINY, "check": {"threshold": 0.5}, "experiments": [*TINY["experiments"], clock]}
    (repository / "experiments" / "nightly.yaml").write_text(yaml.safe_dump(content))
    git(repository, "add", ".")
    git(repository, "commit", "-qm", "base")
    base = git(repository, "rev-parse", "HEAD")
    replaced(repository / "workloads/nightly/variants.py", "time.sleep(self.seconds", "time.sleep(20 * self.seconds")
    git(repository, "commit", "-qam", "slower")
    environment = {**no_ceilings, "PYTHONPATH": str(repository / "suite"), "PYTHONSAFEPATH": "1", "BASE": base}
    done = execute(REQUESTS["github-cpu"].replace("--minutes 20", "--minutes 7"), repository, environment)
    assert done.returncode == 5, done.stdout + done.stderr
    table = (repository / "diff.md").read_text()
    assert re.match(r"## Red: \d slower, of \d cases\n", table) and "**slower**" in table and base[:12] in table
    assert "more cases were not measured: of their code nothing differs" in table and "column_major" not in table
    left = [path.name for path in Path(no_ceilings["TMPDIR"]).glob("perfport-*") if path.is_dir()]
    assert left == [], "both sides' code and results are removed"
