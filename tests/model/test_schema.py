"""What is said of bad input: where, what is allowed, and what is given."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest
from pydantic import Field, model_validator

from perfport.model.errors import UsageError
from perfport.model.schema import (
    MOST_FAULTS,
    MOST_LEVELS,
    MOST_NODES,
    MOST_YAML_BYTES,
    Finite,
    Model,
    key_path,
    parse,
    read,
    validate,
)


class Part(Model):
    """An entry of a list."""

    name: str
    size: float = Field(1.0, gt=0)


class Whole(Model):
    """A file."""

    parts: list[Part]
    by_name: dict[str, Part] = Field(default_factory=dict)

    @model_validator(mode="after")
    def _few(self) -> Whole:
        if len(self.parts) > 2:
            raise ValueError(f"parts: expected at most 2, got {len(self.parts)}")
        return self


def test_key_paths() -> None:
    assert key_path(("experiments", 0, "tunables", "group", 2)) == "experiments[0].tunables.group[2]"
    assert key_path(()) == ""


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ([], "here: expected a mapping with the keys parts, by_name"),
        ({}, "here: parts: required key is missing"),
        (
            {"parts": [{"name": "a", "siez": 1}]},
            "here: parts[0].siez: unknown key (did you mean 'size'?); allowed: name, size",
        ),
        (
            {"parts": [], "by_name": {"x": {"nmae": "a", "name": "b"}}},
            "here: by_name.x.nmae: unknown key (did you mean 'name'?); allowed: name, size",
        ),
        (
            {"parts": [{"name": "a", "size": "1e9x"}]},
            "here: parts[0].size: input should be a valid number, unable to parse string as a number, got '1e9x'",
        ),
        ({"parts": [{"name": "a"}] * 3}, "here: parts: expected at most 2, got 3"),
        (
            {"parts": [{"name": 1}, {"size": 0}]},
            "here: parts[0].name: input should be a valid string, got 1\n"
            "here: parts[1].name: required key is missing\n"
            "here: parts[1].size: input should be greater than 0, got 0",
        ),
    ],
)
def test_each_fault_is_a_line(content: object, message: str) -> None:
    with pytest.raises(UsageError) as error:
        validate(Whole, content, "here")
    assert str(error.value) == message


def test_a_list_of_models() -> None:
    assert validate(list[Part], [{"name": "a"}], "here") == [Part(name="a")]
    with pytest.raises(UsageError, match=r"^here: \[1\]\.name: required key is missing$"):
        validate(list[Part], [{"name": "a"}, {}], "here")


def test_a_key_counts_once_and_a_merged_one_may_be_given_again(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"^here:3: key 'a' is given twice, first on line 1; expected each key once"):
        parse("a: 1\nb: 2\na: 3\n", "here")
    assert parse("x: &x {a: 1}\ny: {<<: *x, a: 2}\n", "here")["y"] == {"a": 2}
    with pytest.raises(UsageError, match=r"none\.yaml: cannot be read \(No such file"):
        read(tmp_path / "none.yaml")
    (tmp_path / "latin.yaml").write_bytes(b"\xff")
    with pytest.raises(UsageError, match=r"latin\.yaml: not UTF-8"):
        read(tmp_path / "latin.yaml")


BOMB = "a: &a [x, x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"{name}: &{name} [{', '.join([f'*{before}'] * 10)}]\n" for before, name in itertools.pairwise("abcdefghi")
)
MERGES = "a: &a {x: 1, y: 2}\n" + "".join(
    f"{name}: &{name} {{<<: [{', '.join([f'*{before}'] * 9)}]}}\n" for before, name in itertools.pairwise("abcdefghi")
)


@pytest.mark.timeout(30)
@pytest.mark.parametrize(
    ("text", "message"),
    [
        (BOMB, "here:6: expected at most 200,000 values, got 1,111,111 values, with what aliases stand for"),
        (MERGES, "here:6: expected at most 200,000 values, got "),
        ("[" * 5000, f"here:1: nested too deeply; expected at most {MOST_LEVELS} levels"),
        ("".join(" " * n + "-\n" for n in range(1000)), f"here:{MOST_LEVELS + 1}: nested too deeply"),
        ("x: &a [1, *a]", "here:1: alias 'a' stands for what it is part of"),
        ("x: !!int ''", "here:1: '' is no value of 'int' (string index out of range)"),
        ("x: !!bool maybe", "here:1: 'maybe' is no value of 'bool'"),
        ("x: !!timestamp now", "here:1: 'now' is no value of 'timestamp'"),
        ("x: 2026-06-31", "here:1: '2026-06-31' is no value of 'timestamp' (day is out of range for month)"),
        ("x: 1" + ":1" * 400 + ".0", "is no value of 'float'"),
        ("x: " + "9" * 5000, "is no value of 'int'"),
        ("x: !!python/object/apply:os.system [ls]", "here: not valid YAML (could not determine a constructor"),
        ("? [a]: b", "here: not valid YAML ("),
        ("a\x00b", "here: not valid YAML ("),
        ('"\\ud800": 1', "here:1: '\\ud800' is no text"),
        ("x: *none", "here: not valid YAML (found undefined alias 'none'"),
    ],
    ids=range(16),
)
def test_what_is_no_sane_file_is_refused_in_a_line(text: str, message: str) -> None:
    with pytest.raises(UsageError) as error:
        parse(text, "here")
    assert message in str(error.value) and "\n" not in str(error.value) and len(str(error.value)) < 600


def test_aliases_within_the_limit_are_read() -> None:
    values = parse(f"a: &a {[0] * 100}\nb: &b [{', '.join(['*a'] * 100)}]\nc: [{', '.join(['*b'] * 10)}]", "here")
    assert len(values["c"]) == 10 and values["c"][9][99] == [0] * 100
    assert len(parse(f"{list(range(50_000))}", "here")) == 50_000 < MOST_NODES
    assert parse("[" * MOST_LEVELS + "]" * MOST_LEVELS, "here")


def test_a_file_of_yaml_has_a_limit(tmp_path: Path) -> None:
    with (tmp_path / "large.yaml").open("wb") as file:
        file.truncate(MOST_YAML_BYTES + 1)
    with pytest.raises(UsageError, match=r"large\.yaml: expected at most 4,194,304 bytes, got 4,194,305$"):
        read(tmp_path / "large.yaml")


def test_messages_have_an_end() -> None:
    class Limits(Finite):
        size: float = 1.0

    with pytest.raises(UsageError) as error:
        validate(list[Part], [{"name": ["x" * 1000] * 1000, "k" * 5000: 1}] * 1000, "here")
    lines = str(error.value).splitlines()
    assert len(lines) == MOST_FAULTS + 1 and lines[-1] == "here: and 1,980 faults more"
    assert all(len(line) < 400 for line in lines)
    for value in (float("nan"), float("inf")):
        with pytest.raises(UsageError, match="size: input should be a finite number"):
            validate(Limits, {"size": value}, "here")
    with pytest.raises(UsageError, match=r"got <a number of 16610 bits>"):
        validate(Part, {"name": 10**5000}, "here")
