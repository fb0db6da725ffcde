"""Counts in the simulator: kernels of known work, planted errors, the stock counter."""

from __future__ import annotations

from pathlib import Path

import pytest
from counted import PLANTED, of

from perfport.machine import simulator
from perfport.model.errors import UnavailableError
from perfport.model.record import Status
from perfport.untimed.child import CheckCase, Job
from perfport.untimed.count import Count, Verdict, counts, simulated, survey

EXACT = (
    "wide", "builtins", "special", "hash", "decide", "dot8", "tile", "atomics", "picture", "constants", "unit",
    "strided", "broadcast", "tuned",
)  # fmt: skip


@pytest.mark.parametrize("variant", EXACT)
def test_known_work_is_counted_exactly(planted: list[Count], variant: str) -> None:
    first, second = of(planted, variant)
    assert first.identity.parameters == {"n": 64} and second.identity.parameters == {"n": 160}
    for count in (first, second):
        assert count.status is Status.OK and count.verdict is Verdict.AGREES and not count.unknown
        assert count.counted is not None and count.counted.provenance == "counted"
        assert {name: q.ratio for name, q in count.quantities.items()} == dict.fromkeys(count.quantities, 1.0)
        assert count.quantities and count.launches == 1  # the launch of the constructor is outside the window


def test_raw_counters_tell_what_is_not_an_operation(planted: list[Count]) -> None:
    raw = of(planted, "special")[0].raw["special"]
    assert all(raw[name] for name in ("branches", "min_max", "convert", "sign", "compare"))
    assert raw["work_items"] == 64 and raw["work_groups"] == 2
    tile = of(planted, "tile")[0].raw["tile"]
    assert tile["barriers"] == 2 and tile["private_store_bytes"] == 64 * 16


@pytest.mark.timeout(900)
@pytest.mark.minutes
def test_every_variant_that_ships_declares_what_is_counted(plugin: simulated.Counter, tmp_path: Path) -> None:
    _, found = survey.run(survey.Options(out=tmp_path / "counts"))
    ran = [count for count in found if count.status is not Status.UNSUPPORTED]
    undeclared = {c.identity.problem for c in ran if c.declared is None}
    off = {
        (c.identity.variant, *c.identity.parameters.values()): c.quantities
        for c in ran if c.verdict != "agrees" and c.declared is not None
    }  # fmt: skip
    assert undeclared == {"tree_build"}  # what a whole build moves depends on its schedule: shown, not judged
    assert ran and not off and not any(count.unknown for count in ran)


STOCK = """Instructions executed for kernel 'before':
               5 - fadd

begin some
Instructions executed for kernel 'k':
             256 - call _Z7barrierj()
              40 - load global (160 bytes)
              30 - load constant (120 bytes)
              20 - store local (80 bytes)
              10 - call _Z6vload4mPU3AS1Kf()
              10 - call _Z8vstore16Dv16_fmPU3AS3f()
               8 - call _Z3expDv4_f()
               8 - call _Z12native_rsqrtf()
               7 - call _Z10atomic_addPU3AS1Vjj()
               6 - call _Z11read_imagef14ocl_image2d_ro11ocl_samplerDv2_i()
               3 - fadd

Instructions executed for kernel 'k':
               4 - store global (16 bytes)

end some
Instructions executed for kernel 'after':
               5 - store global (20 bytes)
"""


def test_stock_counts_between_marks() -> None:
    tally = simulated.parse_stock(STOCK.splitlines())
    assert tally.launches == 2 and list(tally.raw) == ["k"]
    traffic = tally.traffic()
    assert traffic.global_read == 160 + 160 and traffic.constant_read == 120 and traffic.global_write == 16
    assert traffic.local_write == 80 + 640 and traffic.special_ops == 32 + 8
    assert traffic.global_atomics == 7 and traffic.image_read == 96
    assert tally.raw["k"]["fadd"] == 3 and traffic.flops == 0


def test_without_a_compiler_the_stock_counter_is_used(
    plugin: simulated.Counter, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(source: Path) -> Path:
        raise UnavailableError("no C++ compiler")

    monkeypatch.setattr(simulator, "plugin", fail)
    using, why = simulated.counter()
    assert why == "no C++ compiler" and using.plugin is None and "flops" not in using.judged
    device = simulator.find().model_copy(update={"kind": "gpu"})
    job = Job(
        device=device, workloads=[str(PLANTED)], workload="counted", problem="anything", parameters={"n": 64}, seed=1,
        cases=[CheckCase(variant=name) for name in ("wide", "tile", "atomics", "picture", "special")],
    )  # fmt: skip
    for outcome, tally in simulated.count(job, using):
        assert outcome.traffic and tally.launches == 1
        found = counts.compare(outcome.traffic, tally.traffic(), using.judged)
        assert found and all(quantity.ratio == 1 for quantity in found.values()), outcome.case.variant
