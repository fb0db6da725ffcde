"""Names of cases: distinct, the same from run to run, and no longer than it takes."""

from __future__ import annotations

from typing import Any

from perfport.model.names import names
from perfport.model.record import Identity


def identity(variant: str = "fast", **change: Any) -> Identity:
    """An identity of one workload and problem."""
    fields = {"preset": "quick", "parameters": {"n": 10}, "devices": ["opencl:pocl:0"], "backend": "opencl", **change}
    return Identity(workload="demo", problem="rows", variant=variant, **fields)


def test_a_name_is_short_where_nothing_else_has_it() -> None:
    first = identity(tunables={"group": 64})
    assert names([first, identity("slow")]) == [
        "demo/rows/quick/fast@opencl:pocl:0",
        "demo/rows/quick/slow@opencl:pocl:0",
    ]
    assert names([identity(preset=None, parameters={"n": 10, "classes": [3, 8]}, devices=["a", "b"])]) == [
        "demo/rows/classes=[3,8],n=10/fast@a+b"
    ]


def test_cases_of_one_name_get_what_tells_them_apart() -> None:
    sweep = [identity(tunables={"group": group, "unroll": 4}) for group in (64, 128)]
    assert names(sweep) == [f"demo/rows/quick/fast[group={group}]@opencl:pocl:0" for group in (64, 128)]
    tuned = [identity(), identity(profile="hd7970"), identity(parameters={"n": 20})]
    assert names(tuned) == [
        "demo/rows/quick/fast[n=10,profile=native]@opencl:pocl:0",
        "demo/rows/quick/fast[n=10,profile=hd7970]@opencl:pocl:0",
        "demo/rows/quick/fast[n=20,profile=native]@opencl:pocl:0",
    ]


def test_the_name_does_not_follow_a_default() -> None:
    assert names([identity(tunables={"group": 64})]) == names([identity(tunables={"group": 128})])
