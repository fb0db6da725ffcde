"""The workflow files of GitHub Actions and GitLab CI: valid by their schemas, and their commands do what they say."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.main import get_command

from perfport.cli.app import app

ROOT = Path(__file__).parents[2]
GITHUB, GITLAB = ROOT / ".github" / "workflows" / "nightly.yml", ROOT / ".gitlab-ci.yml"
TINY = {
    "name": "nightly",
    "devices": ["all"],
    "measurement": {"min_samples": 3, "max_samples": 3, "time_budget": 0.05, "cache": "warm", "max_noise": 1.0},
    "experiments": [{"workload": "svm_rbf", "problem": "rbf_rows", "presets": ["tiny"], "variants": ["column_major"]}],
}


def github(job: str) -> str:
    """The script of a job: its steps' commands."""
    steps = yaml.safe_load(GITHUB.read_text())["jobs"][job]["steps"]
    return "\n".join(step["run"] for step in steps if "run" in step)


def gitlab(job: str) -> str:
    """The script of a job with that of the hidden job that it extends."""
    content = yaml.safe_load(GITLAB.read_text())
    variables = [f"{name}={value}" for name, value in content[job]["variables"].items()]
    script = content[content[job]["extends"]]["script"]
    return "\n".join([*variables, *content[job]["before_script"], *script])


SCRIPTS = {f"{service.__name__}-{job}": service(job) for service in (github, gitlab) for job in ("cpu", "gpu")}


KNOWN: Any = get_command(app)


def commands(script: str) -> list[str]:
    """The calls of perfport in a script."""
    return [line for line in script.splitlines() if line.startswith("perfport ")]


@pytest.mark.parametrize(
    ("file", "misspelt", "options"),
    [
        (GITHUB, "runs-on:", ["vendor.github-workflows"]),
        (GITLAB, "when: always", ["vendor.gitlab-ci", "--data-transform", "gitlab-ci"]),
    ],
    ids=["github", "gitlab"],
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
    (installed,) = re.findall(r"pip install '\.\[(\w+)\]'", script)
    assert installed in extras
    assert [line.split()[1] for line in commands(script)][:4] == ["devices", "run", "check", "history"]


@pytest.mark.parametrize("script", SCRIPTS.values(), ids=SCRIPTS)
def test_every_option_exists(script: str) -> None:
    for line in commands(script):
        words = line.split("||")[0].split()[1:]
        command = KNOWN.commands[words.pop(0)]
        while words and words[0] in getattr(command, "commands", {}):
            command = command.commands[words.pop(0)]
        options = {name for parameter in command.params for name in (*parameter.opts, *parameter.secondary_opts)}
        assert {word for word in words if word.startswith("-")} <= options, line


@pytest.mark.parametrize("name", ["github-cpu"])
def test_the_commands_of_the_cpu_job_run(name: str, no_ceilings: dict[str, str], tmp_path: Path) -> None:
    """With a tiny experiment in place of the nightly one."""
    (tmp_path / "experiments").mkdir()
    (tmp_path / "experiments" / "nightly.yaml").write_text(yaml.safe_dump(TINY))
    script = "\n".join(line for line in SCRIPTS[name].splitlines() if not line.startswith("pip "))
    program = f'perfport() {{ "{sys.executable}" -m perfport.cli "$@"; }}\n'
    environment = {**no_ceilings, "GITHUB_STEP_SUMMARY": str(tmp_path / "summary.md")}
    done = subprocess.run(
        ["bash", "-e", "-o", "pipefail", "-c", program + script], cwd=tmp_path, env=environment,
        capture_output=True, text=True, timeout=200, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    assert (tmp_path / "check.md").read_text() and (tmp_path / "check.xml").exists()
    assert (tmp_path / "history.html").exists() and len(list((tmp_path / "history").iterdir())) == 1
