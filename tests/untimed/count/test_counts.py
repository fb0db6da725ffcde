"""Declared beside counted: verdicts, tolerance, and stores of counts."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from counted import of

from perfport.model.errors import InfrastructureError, UsageError
from perfport.model.work import Traffic
from perfport.untimed.count import Count, Verdict, counts, read

WRONG = {
    "too_many_flops": "flops", "too_few_flops": "flops", "no_reread": "global_read", "no_integers": "integer_ops",
    "counters": "integer_ops", "no_atomics": "global_atomics", "no_special": "special_ops", "no_local": "local_read",
}  # fmt: skip


@pytest.mark.parametrize("variant", WRONG)
def test_a_wrong_declaration_is_found(planted: list[Count], variant: str) -> None:
    for count in of(planted, variant):
        deviating = [name for name, q in count.quantities.items() if q.verdict is Verdict.DEVIATES]
        assert count.verdict is Verdict.DEVIATES and deviating == [WRONG[variant]]


def test_a_declaration_that_scales_wrongly_is_found_at_the_second_size(planted: list[Count]) -> None:
    assert [count.verdict for count in of(planted, "scales_wrong")] == [Verdict.AGREES, Verdict.DEVIATES]


def test_undeclared_unsupported_and_peers(planted: list[Count]) -> None:
    silent = of(planted, "silent")[0]
    assert silent.verdict is Verdict.UNDECLARED and silent.counted and silent.counted.flops == 768
    cuda = of(planted, "needs_cuda")[0]
    assert cuda.verdict is Verdict.UNSUPPORTED and "cuda" in cuda.reason and cuda.counted is None
    assert not of(planted, "peer")
    assert planted[0].identity.devices == ["opencl:oclgrind:0"] and planted[0].tool == "oclgrind"


def test_tolerance_and_negligible_quantities() -> None:
    def verdict(declared: dict[str, float], counted: dict[str, float], name: str, **more: Any) -> Verdict:
        return counts.compare(Traffic(**declared), Traffic(**counted), **more)[name].verdict

    assert verdict({"flops": 105}, {"flops": 100}, "flops") is Verdict.AGREES
    assert verdict({"flops": 95}, {"flops": 100}, "flops") is Verdict.AGREES
    assert verdict({"flops": 94}, {"flops": 100}, "flops") is Verdict.DEVIATES
    assert verdict({"flops": 106}, {"flops": 100}, "flops") is Verdict.DEVIATES
    assert verdict({"flops": 1}, {}, "flops") is Verdict.DEVIATES
    many = {"flops": 1000.0, "global_read": 1000.0}
    assert verdict(many, {**many, "integer_ops": 9}, "integer_ops") is Verdict.NEGLIGIBLE
    assert verdict(many, {**many, "integer_ops": 11}, "integer_ops") is Verdict.DEVIATES
    assert verdict({**many, "integer_ops": 11}, many, "integer_ops") is Verdict.DEVIATES
    assert verdict(many, {**many, "local_write": 9}, "local_write") is Verdict.NEGLIGIBLE
    for name in ("special_ops", "global_atomics", "local_atomics"):  # these are dear: never negligible
        assert verdict(many, {**many, name: 1}, name) is Verdict.DEVIATES
    assert "constant_read" not in counts.compare(Traffic(), Traffic())
    assert verdict(many, {"flops": 1500}, "flops", expansion={"flops": 500.0}) is Verdict.AGREES
    assert verdict(many, {"flops": 900}, "flops", expansion={"flops": 500.0}) is Verdict.DEVIATES
    assert verdict(many, {"flops": 1700}, "flops", judged=(), shown=("flops",)) is Verdict.SHOWN


def test_bad_stores(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"counts\.jsonl: cannot be read"):
        read(tmp_path)
    (tmp_path / "counts.jsonl").write_text('{"schema_version": 1, "identity": 1}\n')
    with pytest.raises(UsageError, match=r"counts\.jsonl:1: identity"):
        read(tmp_path)
    with pytest.raises(InfrastructureError, match="cannot write counts here"):
        counts.begin(tmp_path / "counts.jsonl" / "below", {})


def test_bytes_of_global_loads_are_those_of_their_sectors(planted: list[Count]) -> None:
    case = planted[0]
    assert case.global_load_bytes is None
    sectors = "l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum"
    counted = case.model_copy(update={"raw": {"a": {sectors: 3.0}, "b": {sectors: 4.0, "other": 1.0}, "c": {}}})
    assert counted.global_load_bytes == 7 * 32
