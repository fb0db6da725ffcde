"""The ledger: bad claims are named, shipped ones follow the rule of the documentation."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from claim_data import (
    claim,
    judge,
    record,
)

from perfport import workload
from perfport.judge.claims import (
    Verdict,
    ledger,
    read,
)
from perfport.model.errors import UsageError


def test_of_a_stated_gain_half_is_enough(tmp_path: Path) -> None:
    one = claim(at_least=None, stated=4)
    assert one.bounds == (2.5, float("inf")) and one.threshold == "at least 2.5 (half of the gain of 4)"
    for ratio, verdict in ((2.6, Verdict.HOLDS), (2.4, Verdict.SMALLER)):
        records = record("slow", 0.02 * ratio, noise=0.001), record("fast", 0.02, noise=0.001)
        assert judge(tmp_path / f"{ratio}", one, *records).verdict is verdict


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ({"reference": None}, "needs 'reference'"),
        ({"at_least": None}, "expected 'stated', or 'at_least', 'at_most' or both"),
        ({"stated": 3}, "expected 'stated', or"),
        ({"at_least": None, "stated": 0.5}, "greater than 1"),
        ({"compare": "share", "at_least": None, "stated": 2}, "'stated' is a ratio of times"),
        ({"at_least": 2, "at_most": 1}, "'at_least' is above 'at_most'"),
        ({"at_least": 2, "at_most": 3}, "must contain no effect, 1"),
        ({"compare": "overhead"}, "needs 'base'"),
        ({"compare": "figure", "figure": None}, "needs 'figure'"),
        ({"compare": "guess"}, "compare"),
        ({"share_of": "datasheet_bound"}, "'share_of' is for compare: share"),
        ({"applies_to": "tpu"}, "'gpu'"),
        ({"speed": 3}, "speed"),
        ({"id": "Not so"}, "id"),
    ],
)
def test_bad_claims_are_named(tmp_path: Path, change: dict[str, Any], complaint: str) -> None:
    content = claim().model_dump(exclude_none=True, exclude_unset=True)
    content = {k: v for k, v in {**content, **change}.items() if v is not None}
    file = tmp_path / "claims.yaml"
    file.write_text(yaml.safe_dump([content]))
    with pytest.raises(UsageError, match=r"claims\.yaml: \[0\]") as caught:
        read(file)
    assert complaint in str(caught.value)


def test_two_claims_of_one_id_and_a_broken_file_are_errors(tmp_path: Path) -> None:
    file = tmp_path / "claims.yaml"
    content = claim().model_dump(exclude_unset=True)
    file.write_text(yaml.safe_dump([content, content]))
    with pytest.raises(UsageError, match="two claims have the id 'one'"):
        read(file)
    file.write_text("- {")
    with pytest.raises(UsageError, match=r"claims\.yaml: not valid YAML"):
        read(file)


def test_the_ledger_has_the_claims_of_all_five_sources() -> None:
    found = ledger()
    assert len(found) >= 5 and sum(map(len, found.values())) >= 40
    assert all(one.source and one.statement.endswith(".") for listed in found.values() for one in listed)


def test_claims_name_problems_and_variants_that_exist() -> None:
    """A claim with a misspelt name would be `not measured` for ever."""
    claims = ledger()
    for name, found in workload.discover().items():
        for one in claims.get(name, []):
            variants = found.variants[found.problem(one.problem).name]
            for side in (one.subject, one.reference, one.base):
                assert side is None or set(side.variants) <= set(variants), f"{name}/{one.id}: {side.variants}"
                tunables = {t for v in side.variants for t in variants[v].tunables} if side else set()
                assert side is None or set(side.tunables) <= tunables, f"{name}/{one.id}: {side.tunables}"
            fields = found.problem(one.problem).Parameters.model_fields
            assert set(one.parameters) <= set(fields), f"{name}/{one.id}: {list(one.parameters)}"


def test_times_of_gpus_are_claimed_of_gpus_and_amounts_of_any_device() -> None:
    """All sources timed GPUs. An amount that no device changes is judged wherever it was counted."""
    for name, listed in ledger().items():
        for one in listed:
            of_code = one.compare == "figure" and re.search(r"machine|cubin|timing", str(one.figure))
            timed = one.compare != "figure" or bool(of_code)
            assert one.applies_to == (["gpu"] if timed else []), f"{name}/{one.id}"
            assert not (timed and one.by_construction), f"{name}/{one.id}"


def test_a_share_has_the_denominator_of_its_source() -> None:
    """The sources that ship divide by the bandwidth of the datasheet."""
    shares = [one for listed in ledger().values() for one in listed if one.compare == "share"]
    assert shares and all(one.share_of == "datasheet_bound" for one in shares)


def _numbers(text: str) -> set[float]:
    """Return the numbers of a text, as they stand and as shares where they are percentages."""
    found = re.findall(r"(\d+(?:\.\d+)?)( ?%)?", text)
    return {round(float(value) / (100 if percent else 1), 6) for value, percent in found}


def test_thresholds_follow_the_rule_of_the_documentation() -> None:
    """A stated gain is halved, a bound or a share stands as stated, a direction is 2 %, about is 10 %."""
    for name, listed in ledger().items():
        for one in listed:
            which, said = f"{name}/{one.id}", f"{one.statement} {one.published or ''}"
            gain = re.search(r"\d times|\d ?%|(?<![pN]) = \d", said.replace("within 2 %", ""))
            if one.stated is not None:
                assert one.stated in _numbers(said), which
                continue
            for bound in filter(None, (one.at_least, one.at_most)):
                direction = bound in (0.98, 1.02) and not gain
                about = bound in (0.9, 1.1) and "within 10 %" in said
                assert direction or about or bound in _numbers(said) | {1.0}, f"{which}: {bound}"
