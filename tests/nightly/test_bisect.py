"""The first slower commit: the search, what has no verdict, ends that are none."""

from __future__ import annotations

import contextlib
from pathlib import Path

import pytest
from check_data import case, store
from code_repository import git, needs_git
from hypothesis import given
from hypothesis import strategies as st

from perfport.model.errors import InfrastructureError, UsageError
from perfport.model.record import Failure, Interval, Status
from perfport.model.untrusted import printable
from perfport.nightly import bisect as module
from perfport.nightly.bisect import bisect, search
from perfport.nightly.diff import Options, Planned, Sides
from perfport.nightly.inturn import Round
from perfport.nightly.place import series_key
from perfport.run.experiment import Experiment


def quiet(_: str) -> None:
    """Say nothing."""


@given(
    st.integers(2, 60).flatmap(lambda n: st.tuples(st.just(n), st.integers(0, n - 1), st.sets(st.integers(0, n - 2))))
)
def test_the_first_bad_commit_is_among_those_that_are_left(drawn: tuple[int, int, set[int]]) -> None:
    number, culprit, unknown = drawn
    asked: list[int] = []

    def is_bad(at: int) -> bool | None:
        asked.append(at)
        return None if at in unknown else at >= culprit

    first, last = search(number, is_bad, quiet)
    assert first <= culprit <= last and len(asked) == len(set(asked))
    assert first == last or all(at in unknown for at in range(first, last)), "only those without a verdict are left"
    assert unknown or len(asked) <= number.bit_length(), "in halves"


def test_a_commit_is_bad_nearer_to_the_bad_end() -> None:
    whole = Interval(value=0.81, low=0.8, high=0.82)
    for low, high, bad in ((0.95, 1.05, False), (0.8, 0.85, True), (0.85, 0.95, None)):
        assert module._is_bad(Interval(value=(low + high) / 2, low=low, high=high), whole) is bad
    assert module._is_bad(None, whole) is None


@pytest.mark.parametrize("status", [Status.OK, Status.CONTENDED])
def test_disturbed_rounds_give_no_verdict(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, status: Status) -> None:
    """Others slow the later commit, in every round."""
    failure = Failure(reason="others") if status is Status.CONTENDED else None
    slow = [case("v0", 0.06, seed=n, workers=1, status=status, failure=failure) for n in range(5)]
    run = store(tmp_path / "round-0" / "head", slow[:1])
    series = series_key(run, run.records[0])
    rounds = {series: [Round(case("v0", 0.05, seed=9 + n, workers=1), slow[n]) for n in range(5)]}
    study = {"workload": "demo", "problem": "rows", "presets": ["quick"]}
    definition = Experiment.model_validate({"name": "demo", "experiments": [study]})
    sides = Sides({"base": None, "head": None}, definition, tmp_path, (), {})
    monkeypatch.setattr(module, "laid_out", lambda *_: contextlib.nullcontext(sides))
    monkeypatch.setattr(module, "measured", lambda *_: rounds)
    monkeypatch.setattr(module.discovery, "discover", list)
    said: list[str] = []
    planned = [Planned(run.records[0].identity, series, 3)]
    ratio = module._ratio(definition, Options(), planned, {"base": "a" * 40, "head": "b" * 40}, said.append)
    if failure:
        assert ratio is None and said == ["bbbbbbbbbbbb: cannot tell: 5 of 5 rounds contended: others"]
    else:
        assert ratio and ratio.value == pytest.approx(5 / 6, rel=0.02)


@needs_git
def test_a_message_that_is_no_utf8_is_told(commits: list[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "suite/kernel.cl").write_text("slow")
    (tmp_path / "message").write_bytes(b"un caf\xe9\n")
    git(tmp_path, "commit", "-qaF", "message")
    commits.append(git(tmp_path, "rev-parse", "HEAD"))
    slow_from(monkeypatch, commits, 6)
    found = bisect("rows", commits[0], "HEAD", Options(), quiet)
    assert found.commits == [commits[6]] and printable(found.subject).startswith("un caf")


@pytest.fixture
def commits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Six commits, of which the third touches no code; the fourth is the slow one."""
    git(tmp_path, "init", "-q")
    made = []
    for number in range(6):
        file = tmp_path / ("README.md" if number == 2 else "suite/kernel.cl")
        file.parent.mkdir(exist_ok=True)
        file.write_text(str(number))
        git(tmp_path, "add", ".")
        git(tmp_path, "commit", "-qm", f"commit {number}")
        made.append(git(tmp_path, "rev-parse", "HEAD"))
    monkeypatch.setattr(module, "own_repository", lambda: tmp_path)
    monkeypatch.setattr(module, "choose", lambda *_: [])
    monkeypatch.setattr(module.discovery, "discover", list)
    monkeypatch.setattr(module, "planned_cases", lambda *_: [None])
    return made


def slow_from(
    monkeypatch: pytest.MonkeyPatch, commits: list[str], culprit: int, unknown: tuple[int, ...] = ()
) -> list[int]:
    """Let every commit from one on be 20 % slower; returns the commits that are asked for."""
    asked: list[int] = []

    def ratio(
        definition: object, options: Options, planned: list[Planned], sides: dict[str, str], say: object
    ) -> Interval | None:
        number = commits.index(sides["head"])
        asked.append(number)
        value = 1 / 1.2 if number >= culprit else 1.0
        return None if number in unknown else Interval(value=value, low=0.99 * value, high=1.01 * value)

    monkeypatch.setattr(module, "_ratio", ratio)
    return asked


@needs_git
def test_the_commit_is_found(commits: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    asked = slow_from(monkeypatch, commits, 3)
    found = bisect("rows", commits[0], "HEAD", Options(), quiet)
    assert found.commits == [commits[3]] and found.subject == "commit 3" and found.ratio.value == pytest.approx(1 / 1.2)
    assert 2 not in asked and asked[0] == 5, "what touches no code is not measured"


@needs_git
def test_commits_without_a_verdict_are_named_with_the_slow_one(
    commits: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    slow_from(monkeypatch, commits, 3, unknown=(3,))
    assert bisect("rows", commits[0], commits[5], Options(), quiet).commits == [commits[3], commits[4]]


@needs_git
def test_ends_that_are_none(commits: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    slow_from(monkeypatch, commits, 9)
    with pytest.raises(InfrastructureError, match=r"is not known to be slower than .*: it is 1.000 times as slow"):
        bisect("rows", commits[0], commits[5], Options(), quiet)
    slow_from(monkeypatch, commits, 3, unknown=(5,))
    with pytest.raises(InfrastructureError, match="there is no verdict"):
        bisect("rows", commits[0], commits[5], Options(), quiet)
    for good, bad, said in ((5, 0, "does not descend from"), (3, 3, "does not descend"), (1, 2, "touches code")):
        with pytest.raises(UsageError, match=said):
            bisect("rows", commits[good], commits[bad], Options(), quiet)
    monkeypatch.setattr(module, "planned_cases", lambda *_: [])
    with pytest.raises(UsageError, match="expected one case of one device, got 0"):
        bisect("rows", commits[0], commits[5], Options(), quiet)
