"""The guides, followed to the letter in an empty folder: docs/add-a-variant.md, add-a-workload.md, add-a-device.md."""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from typing import Any

import pytest
import yaml

from perfport.machine.device_profile import load_profile

pytestmark = pytest.mark.any_device
ROOT = Path(__file__).parents[2]


def blocks(guide: str) -> list[tuple[str, str, str]]:
    """Return language, text, and what stands before it, of each fenced block of a guide."""
    text = (ROOT / "docs" / guide).read_text()
    parts = re.split(r"^```(\w*)\n(.*?)^```\n", text, flags=re.M | re.S)
    return [(parts[i + 1], parts[i + 2], parts[i]) for i in range(0, len(parts) - 2, 3)]


def write_files(guide: str, base: Path) -> list[Path]:
    """Write each block before which a path stands in backquotes; returns the files."""
    written = []
    for language, text, before in blocks(guide):
        paths = re.findall(r"`([\w./]+\.(?:py|cl))`", before)
        if language in ("python", "c") and paths:
            path = base / paths[-1].removeprefix("workloads/")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
            written.append(path)
    return written


@pytest.fixture
def here(tmp_path: Path, no_ceilings: dict[str, str]) -> dict[str, Any]:
    """Where a command of the guide runs."""
    return {"cwd": tmp_path, "env": no_ceilings}


def test_a_workload(perfport: Any, here: dict[str, Any], tmp_path: Path) -> None:
    files = write_files("add-a-workload.md", tmp_path)
    assert [path.relative_to(tmp_path).as_posix() for path in files] == ["scale/__init__.py", "scale/kernels/scale.cl"]
    assert "Scaling of a vector" in perfport("list", "scale", "--workloads", "scale", **here).stdout
    again = perfport("show", "scale/scale/plain", "--workloads", "scale", "--rerun", **here)
    assert again.returncode == 0 and re.search(r"\d (ok|contended)", again.stdout), again.stdout + again.stderr
    right = perfport("verify", "scale/", "--workloads", "scale", **here)
    assert right.returncode == 0 and "ok" in right.stdout, right.stdout + right.stderr
    files[0].write_text(files[0].read_text().replace("problem.parameters.a)", "0)"))
    assert perfport("verify", "scale/", "--workloads", "scale", **here).returncode == 3


def test_a_variant(perfport: Any, here: dict[str, Any], tmp_path: Path) -> None:
    shutil.copytree(ROOT / "workloads" / "svm_rbf", tmp_path / "svm_rbf")
    files = write_files("add-a-variant.md", tmp_path)
    assert [path.name for path in files] == ["row_batch.cl", "row_batch.py"]
    (tmp_path / "svm_rbf").rename(tmp_path / "mine")
    again = perfport("show", "mine/rbf_rows/row_batch", "--workloads", "mine", "--rerun", **here)
    assert again.returncode == 0 and re.search(r"\d (ok|contended)", again.stdout), again.stdout + again.stderr
    right = perfport("verify", "row_batch", "--workloads", "mine", **here)
    assert right.returncode == 0 and "ok" in right.stdout, right.stdout + right.stderr


def test_a_device(tmp_path: Path) -> None:
    (example,) = [text for language, text, _ in blocks("add-a-device.md") if language == "yaml"]
    known = yaml.safe_load((ROOT / "device_profiles" / "k40m.yaml").read_text())
    content = yaml.safe_load(example)
    for part in ("ceilings", "hierarchy"):  # "..." stands for the keys that the guide lists below
        unknown = {
            name: {**entry, "value": None, "source": "d", "note": "not published"}
            for name, entry in known[part].items()
        }
        content[part] = unknown | content[part]
    path = tmp_path / "example.yaml"
    path.write_text(yaml.safe_dump(content))
    assert load_profile(path).title == "Example GPU"
