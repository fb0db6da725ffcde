"""Linux' powercap as files in a folder: processor packages with their counters, still or driven by a thread."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

RANGE = 262_143_328_850


def zone(root: Path, folder: str, name: str, energy: int = 0, span: int = RANGE) -> Path:
    """Write one power zone, in µJ; return its folder."""
    path = root / folder
    path.mkdir(parents=True)
    (path / "name").write_text(f"{name}\n")
    (path / "energy_uj").write_text(f"{energy}\n")
    (path / "max_energy_range_uj").write_text(f"{span}\n")
    return path


def server(root: Path, energy: int = 0) -> list[Path]:
    """Write what a server with two packages has, and return the folders of these; other zones count far faster."""
    (root / "intel-rapl").mkdir(parents=True)
    packages = [zone(root, f"intel-rapl:{number}", f"package-{number}", energy) for number in range(2)]
    zone(root, "intel-rapl:0:0", "core", 10**9)
    zone(root, "intel-rapl:0:1", "dram", 10**9)
    zone(root, "intel-rapl:2", "psys", 10**9)
    zone(root, "intel-rapl-mmio:0", "package-0", 10**9)
    return packages


def tell(package: Path, energy: int) -> None:
    """Let a package's counter tell so many µJ; a reader sees the old number or the new one."""
    (package / "next").write_text(f"{energy}\n")
    (package / "next").replace(package / "energy_uj")


@contextmanager
def consuming(packages: list[Path], watts: float, energy: int) -> Iterator[None]:
    """Let each package consume so much from ``energy`` µJ on, its counter wrapping around, while the context lasts."""
    ended = threading.Event()
    started = time.perf_counter()

    def count() -> None:
        while not ended.wait(0.002):
            for package in packages:
                tell(package, (energy + int(watts * 1e6 * (time.perf_counter() - started))) % RANGE)

    thread = threading.Thread(target=count, daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()
