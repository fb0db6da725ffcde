"""The command line as tests call it, and an experiment file for it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import yaml

Cli = Callable[..., tuple[int, str, str]]


def experiment(folder: Path, **change: Any) -> Path:
    """Write an experiment file that is valid but for the changes."""
    content = {
        "name": "test",
        "measurement": {"min_samples": 3, "max_samples": 3, "time_budget": 0.05, "cache": "warm"},
        "experiments": [{"workload": "svm_rbf", "problem": "rbf_rows", "presets": ["tiny"]}],
    }
    study = change.pop("study", {})
    content["experiments"][0].update(study)
    content = {key: value for key, value in {**content, **change}.items() if value != "absent"}
    path = folder / "experiment.yaml"
    path.write_text(yaml.safe_dump(content))
    return path
