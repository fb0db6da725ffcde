"""Cache lines that an access of a hardware thread touches."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from counted import of

from perfport.model.errors import UsageError
from perfport.untimed.count import Count, coalescing, simulated, survey
from perfport.untimed.count.coalescing import ACCESS, DEFAULT_SHAPES, Shape

WIDE, NARROW = DEFAULT_SHAPES


def test_coalescing_of_traced_kernels(planted: list[Count]) -> None:
    def lines(variant: str, shape: Shape) -> tuple[float, float]:
        count = of(planted, variant)[-1]
        (load,) = [p for p in count.coalescing if p.argument == "x" and p.place and p.shape == shape.name]
        assert load.kernel == "strided" and load.place.startswith("counted.cl:") and load.store is False
        return load.lines, load.ideal

    assert not of(planted, "unit")[0].coalescing  # of the largest size alone
    assert lines("unit", WIDE) == (1, 1)
    assert lines("strided", WIDE) == (32, 1)
    assert lines("broadcast", WIDE) == (1, 1)
    assert lines("unit", NARROW)[0] == 2  # work-groups of 32: half a hardware thread of 64
    assert lines("strided", NARROW)[0] == 32


def access(address: np.ndarray, group: int = 0, occurrence: int = 0, size: int = 4) -> np.ndarray:
    found = np.zeros(len(address), ACCESS)
    found["item"] = np.arange(len(address))
    found["address"], found["size"] = address, size
    found["group"], found["occurrence"] = group, occurrence
    return found


def pattern(trace: np.ndarray, shape: Shape) -> coalescing.AccessPattern:
    place = {"instruction": 0, "line": 7, "column": 3, "file": "k.cl", "space": "global", "store": True}
    launch = {"launch": 0, "kernel": "k", "accesses": [place], "arguments": {"0": "out"}}
    whole, site = coalescing.patterns(trace, [launch], [shape])
    assert whole.place is None and site.place == "k.cl:7:3" and site.store and whole.lines == site.lines
    return site


ITEMS = np.arange(64, dtype=np.uint64)


@pytest.mark.parametrize(
    "addresses, size, shape, lines, ideal, accesses",
    [
        (4 * ITEMS, 4, WIDE, 1, 1, 2),
        (4 * ITEMS, 4, NARROW, 4, 4, 1),
        (4 * ITEMS + 64, 4, WIDE, 2, 1, 2),  # half a line off
        (128 * ITEMS, 4, WIDE, 32, 1, 2),
        (0 * ITEMS, 4, NARROW, 1, 1, 1),
        (16 * ITEMS, 16, WIDE, 4, 4, 2),
        (20 * ITEMS, 16, NARROW, 20, 16, 1),  # some straddle a line
    ],
)
def test_lines_of_one_access(
    addresses: np.ndarray, size: int, shape: Shape, lines: float, ideal: float, accesses: int
) -> None:
    found = pattern(access(addresses, size=size), shape)
    assert (found.lines, found.ideal, found.accesses) == (lines, ideal, accesses)
    assert found.excess == lines / ideal


def test_random_accesses_against_sets() -> None:
    rng = np.random.default_rng(5)
    parts = [rng.integers(0, 4096, 64).astype(np.uint64) * np.uint64(4) for _ in range(6)]
    trace = np.concatenate([access(part, group=k // 3, occurrence=k % 3) for k, part in enumerate(parts)])
    found = pattern(trace, WIDE)
    halves = [half for part in parts for half in (part[:32], part[32:])]
    assert found.accesses == 12
    assert found.lines == pytest.approx(np.mean([len({int(a) // 128 for a in half}) for half in halves]))
    assert found.ideal == pytest.approx(np.mean([-(-4 * len(set(half.tolist())) // 128) for half in halves]))


def test_shapes_come_from_profiles() -> None:
    assert coalescing.shape_of("hd7970") == Shape("hd7970", 64, 64)
    with pytest.raises(UsageError, match="generic_cpu"):
        coalescing.shape_of("generic_cpu")


def test_row_major_touches_more_lines_than_column_major(plugin: simulated.Counter, tmp_path: Path) -> None:
    def lines(variant: str) -> float:
        what = f"svm_rbf/rbf_rows/{variant}"
        _, found = survey.run(survey.Options(what=what, out=tmp_path / variant, profiles=["hd5870"]))
        own = [p for p in found[-1].coalescing if p.argument == "data" and p.place]
        return max(p.lines for p in own)  # of the load of all points' words

    rows, columns = lines("row_major"), lines("column_major")
    assert rows > 10 * columns and columns <= 4
