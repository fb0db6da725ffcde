"""``diff`` and ``bisect``: exit codes, arguments, what is told."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import report_data as data
from commands import Cli

from perfport.model.record import Interval
from perfport.nightly import bisect as search
from perfport.nightly import diff as module
from perfport.nightly.bisect import Culprit
from perfport.nightly.diff import Difference, Options
from perfport.nightly.finding import Finding, Judgement, Outcome
from perfport.nightly.place import series_key


@pytest.mark.parametrize(
    ("outcomes", "code", "headline"),
    [
        ([Outcome.SAME], 0, "Green: no regression found"),
        ([Outcome.SLOWER, Outcome.SAME], 5, "Red: 1 slower, of 2 cases"),
        ([Outcome.FAILED, Outcome.SLOWER], 4, "Red: 1 newly failing, 1 slower"),
        ([Outcome.WRONG, Outcome.VANISHED], 3, "Red: 1 wrong, 1 vanished"),
        ([Outcome.CANNOT_TELL, Outcome.SAME], 6, "Yellow: no regression found, but only 1 of 2"),
        ([], 0, "Green: of 4 cases nothing differs in the code"),
    ],
)
def test_exit_codes_and_headlines(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any, outcomes: list[Outcome], code: int, headline: str
) -> None:
    asked: list[Any] = []

    def diff(base: str, head: str | None, options: Options, say: Callable[[str], None]) -> Difference:
        asked.append((base, head, options))
        say("round 1")
        run = data.store(tmp_path / "run", [data.record(f"v{n}") for n in range(len(outcomes))])
        findings = [Finding(series_key(run, r), o, r) for r, o in zip(run.records, outcomes, strict=True)]
        judgement = Judgement(run, "main", findings, min_judged=0.8) if outcomes else None
        return Difference("main", "head", judgement, 4, 1.0)

    monkeypatch.setattr(module, "diff", diff)
    arguments = ("main", "topic", "-b", "rows", "-b", "step", "--minutes", "2", "--experiment", "quick", "--all")
    assert data.call(monkeypatch, "diff", *arguments, "-o", tmp_path / "d.md") == code
    told = capsys.readouterr()
    assert f"perfport diff: {headline}" in told.err and "perfport: round 1" in told.err
    assert (tmp_path / "d.md").read_text().startswith(f"## {headline}")
    assert asked == [("main", "topic", Options("quick", ("rows", "step"), None, 120.0, [], True))]


def test_the_culprit_is_named(monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    found = Culprit(["ab" * 20], "slower <kernel>", Interval(value=0.8, low=0.79, high=0.81))
    monkeypatch.setattr(search, "bisect", lambda *_: found)
    assert data.call(monkeypatch, "bisect", "rows", "v1", "v2") == 0
    said = f"{'ab' * 20} is the first slower commit (1.250 times the time from v1 to v2): slower <kernel>"
    assert said in capsys.readouterr().out
    several = Culprit(["ab" * 20, "cd" * 20], "", found.ratio)
    monkeypatch.setattr(search, "bisect", lambda *_: several)
    assert data.call(monkeypatch, "bisect", "rows", "v1", "v2") == 0
    assert capsys.readouterr().out.splitlines()[1:] == ["ab" * 20, "cd" * 20]


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("diff", "HEAD", "--minutes", "0"), "--minutes: expected more than 0"),
        (("diff", "HEAD", "--minutes", "nan"), "--minutes: expected more than 0"),
        (("diff", "no-such-commit"), "'no-such-commit' is no commit of the repository"),
        (("diff", "--output=x"), ""),
        (("diff", "HEAD", "-b", "no such case"), "no case is left by -b 'no such case'"),
        (("bisect", "rows", "HEAD", "HEAD"), "does not descend from"),
    ],
)
def test_wrong_arguments_are_named(main: Cli, arguments: tuple[str, ...], told: str) -> None:
    code, _, err = main(*arguments)
    copied = code == 4 and "no git repository" in err  # the suite was copied without its history
    assert copied or (code == 2 and told in err)
