"""Results on their way to other tools and back."""

from __future__ import annotations

from pathlib import Path

import report_data as data
from commands import Cli


def test_what_is_exported_can_be_imported(main: Cli, tmp_path: Path) -> None:
    run = data.store(tmp_path / "runs" / "own", data.ladder(data.POCL))
    file = tmp_path / "own.json"
    code, out, _ = main("export", tmp_path / "runs", "--format", "pyperf", "-o", file, discover=False)
    assert code == 0 and out == f"{file}\n"
    where = ["--beside", run.folder, "--as", f"demo/rows/quick@{data.POCL}", "--out", tmp_path / "theirs"]
    code, out, _ = main("import", file, "--format", "pyperf", *where, discover=False)
    assert code == 0 and out == f"{tmp_path}/theirs: 9 peers of demo/rows/quick@{data.POCL}\n"
    code, _, err = main("export", tmp_path / "none", "--format", "pyperf", "-o", file, discover=False)
    assert code == 2 and "no results here" in err
