"""Sizes of the host's caches, read from folders that look like Linux' own."""

from __future__ import annotations

from pathlib import Path

import pytest

from perfport.backend import host_caches


def processors(root: Path, *shared: str, size: str = "32768K", threads: int = 2) -> Path:
    """So many hardware threads for each last-level cache, which they share by this list."""
    for number, (each, _) in enumerate((each, thread) for each in shared for thread in range(threads)):
        levels = (("1", "Data", "48K", str(number)), ("1", "Instruction", "64K", str(number)))
        levels += (("2", "Unified", "1024K", str(number)), ("3", "Unified", size, each))
        for index, values in enumerate(levels):
            cache = root / f"cpu{number}" / "cache" / f"index{index}"
            cache.mkdir(parents=True)
            for name, value in zip(("level", "type", "size", "shared_cpu_list"), values, strict=True):
                (cache / name).write_text(f"{value}\n")
    (root / "cpufreq").mkdir()
    (root / "cpu99").mkdir()  # offline: it has no caches
    return root


@pytest.mark.parametrize(
    ("shared", "size", "total"),
    [
        (("0-1",), "32768K", 32 << 20),
        (("0-1", "2-3"), "260M", 520 << 20),  # two sockets
        (("0-7,64-71", "8-15,72-79", "16-23,80-87", "24-31,88-95"), "32768K", 128 << 20),  # four core complexes
    ],
)
def test_last_levels_are_added_up_over_sockets_and_core_complexes(
    tmp_path: Path, shared: tuple[str, ...], size: str, total: int
) -> None:
    root = processors(tmp_path, *shared, size=size)
    assert host_caches.last_levels(root) == total and host_caches.largest(root) == total // len(shared)


def test_where_there_is_no_third_level_the_second_is_the_last(tmp_path: Path) -> None:
    root = processors(tmp_path, "0-1")
    for size in root.glob("cpu*/cache/index3/size"):
        size.unlink()
    assert host_caches.last_levels(root) == 2 << 20 and host_caches.largest(root) == 1 << 20


def test_a_system_that_does_not_say_gives_nothing(tmp_path: Path) -> None:
    assert host_caches.last_levels(tmp_path / "none") is None and host_caches.largest(tmp_path / "none") is None


def test_this_machine_has_no_less_in_all_than_in_one() -> None:
    largest, total = host_caches.largest(), host_caches.last_levels()
    assert (largest is None) == (total is None) and (total or 0) >= (largest or 0)
