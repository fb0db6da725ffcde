"""The caches of the host's processors, as Linux describes them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

SYSFS = Path("/sys/devices/system/cpu")
_SHIFTS = {"K": 10, "M": 20, "G": 30}


def largest(root: Path = SYSFS) -> int | None:
    """Return the bytes of the largest single cache of a core (runtimes disagree on which level they mean).

    ``root`` is the folder with those of the processors; ``None`` where it does not say.
    """
    return max((size for cpu in root.glob("cpu[0-9]*") for _, _, size in _caches(cpu)), default=None)


def last_levels(root: Path = SYSFS) -> int | None:
    """Return the bytes of all last-level caches together: there is one for each socket, or for each core complex.

    Hardware threads that share one name it by the same list of them; ``root`` as of `largest`.
    """
    last = (max(caches) for cpu in root.glob("cpu[0-9]*") if (caches := list(_caches(cpu))))
    sizes = {shared: size for _, shared, size in last}
    return sum(sizes.values()) or None


def _caches(cpu: Path) -> Iterator[tuple[int, str, int]]:
    """Yield level, who shares it, and bytes of each cache of one hardware thread that holds data."""
    for cache in cpu.glob("cache/index*"):
        if _said(cache, "type") != "Instruction" and (size := _said(cache, "size")):
            yield int(_said(cache, "level") or 0), _said(cache, "shared_cpu_list"), _bytes(size)


def _bytes(size: str) -> int:
    return int(size.rstrip("KMG")) << _SHIFTS.get(size[-1], 0)


def _said(cache: Path, name: str) -> str:
    try:
        return (cache / name).read_text().strip()
    except OSError:
        return ""
