"""What is said of bad input: where, what is allowed, and what is given."""

from __future__ import annotations

from pathlib import Path

import pytest
from pydantic import Field, model_validator

from perfport.model.errors import UsageError
from perfport.model.schema import Model, key_path, parse, read, validate


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
    with pytest.raises(UsageError, match=r"latin\.yaml: not valid YAML"):
        read(tmp_path / "latin.yaml")
