import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_every_package_of_the_harness_is_in_the_wheel() -> None:
    shipped = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]["packages"]
    packages = {
        ".".join(file.parent.relative_to(ROOT / "suite").parts) for file in (ROOT / "suite").rglob("__init__.py")
    }
    assert packages <= set(shipped)
