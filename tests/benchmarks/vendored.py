"""Bring the JavaScript libraries of the suite report's page up to the versions below: run by hand, needs npm.

    python tests/benchmarks/vendored.py

Installs them into a folder that is thrown away, without running scripts of theirs, and writes their minified files to
``suite/perfport/report/viewer/vendor``, with the licences of all that these hold in ``LICENSES.txt``. The same versions
give the same bytes; ``tests/report/viewer/test_document.py`` holds the files to `FILES`.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import tempfile
from pathlib import Path

VENDOR = Path(__file__).parents[2] / "suite" / "perfport" / "report" / "viewer" / "vendor"
#: Of each package its version, the file that is taken, and the SHA-256 of that file.
FILES = {
    "d3": (
        "7.9.2", "dist/d3.min.js",
        "912111098ea99503a6f4967361d2bbdc9dbf58cf9c678c8e27e5b02d1a07f0c1",
    ),
    "@observablehq/plot": (
        "0.6.17", "dist/plot.umd.min.js",
        "4358086467740777dd788d6b27a95cebdbaefdd50c730a3060117073bd7134cb",
    ),
    "diff": (
        "9.0.0", "dist/diff.min.js",
        "b51a9d2885f2c090dc97b981027395f7e7e6558a46c75ae3747db267913a89ab",
    ),
}  # fmt: skip
#: Needed by command-line programs of the packages alone: in none of the files.
NOT_HELD = {"commander", "iconv-lite", "rw", "safer-buffer"}


def licences(modules: Path) -> str:
    """Return the licences of all packages that are held, equal texts once."""
    texts: dict[str, list[str]] = {}
    for manifest in sorted([*modules.glob("*/package.json"), *modules.glob("@*/*/package.json")]):
        package = json.loads(manifest.read_text())
        if package["name"] not in NOT_HELD:
            (file,) = manifest.parent.glob("LICENSE*")
            names = texts.setdefault(file.read_text().strip(), [])
            names.append(f"{package['name']} {package['version']} ({package['license']})")
    return "\n\n".join(f"{', '.join(names)}\n\n{text}\n\n{'-' * 72}" for text, names in texts.items()) + "\n"


def main() -> None:
    """Install, copy, write the licences."""
    with tempfile.TemporaryDirectory() as name:
        wanted = [f"{package}@{version}" for package, (version, *_) in FILES.items()]
        subprocess.run(["npm", "install", "--ignore-scripts", "--no-audit", "--prefix", name, *wanted], check=True)
        modules = Path(name) / "node_modules"
        for package, (_, file, _) in FILES.items():
            shutil.copyfile(modules / package / file, VENDOR / Path(file).name)
        (VENDOR / "LICENSES.txt").write_text(licences(modules))


if __name__ == "__main__":
    main()
