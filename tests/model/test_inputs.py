"""Formats of others: errors of libraries become the project's own, XML that declares entities is not read."""

from __future__ import annotations

import zlib

import pytest

from perfport.model import inputs
from perfport.model.errors import UnavailableError, UsageError
from perfport.model.inputs import damaged, xml


def test_errors_of_libraries_become_the_projects_own() -> None:
    for error in (ZeroDivisionError("by\n  zero"), zlib.error("bad"), RecursionError(), MemoryError("x" * 1000)):
        with pytest.raises(UsageError, match=r"^a\.npy: damaged \(.+\)$") as raised, damaged("a.npy: damaged"):
            raise error
        assert len(str(raised.value)) < 300 and "\n" not in str(raised.value)
    with pytest.raises(UnavailableError, match=r"^as it was$"), damaged("a.npy: damaged"):
        raise UnavailableError("as it was")


# --- XML ----------------------------------------------------------------------------------------------------------

LAUGHS = "".join(f'<!ENTITY e{i} "{f"&e{i - 1};" * 10 if i else "ha"}">' for i in range(10))


def test_plain_xml_is_read() -> None:
    root = xml(b'<?xml version="1.0"?><!-- a comment --><a><b c="1">text &amp; more</b></a>', "a.xml")
    assert root.tag == "a" and root[0].text == "text & more" and root[0].get("c") == "1"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (f"<!DOCTYPE a [{LAUGHS}]><a>&e9;</a>", r"without a document type, got <!DOCTYPE a>"),
        ('<!DOCTYPE a [<!ENTITY b SYSTEM "file:///etc/passwd">]><a>&b;</a>', "without a document type"),
        ('<!DOCTYPE a SYSTEM "http://localhost/a.dtd"><a/>', "without a document type"),
        ("<a>" * 65 + "</a>" * 65, "at most 64 elements inside each other"),
        ("<a>" * 100_000, "at most 64 elements inside each other"),
        ("<a>&b;</a>", "not an XML file .*undefined entity"),
        ("<a>", "not an XML file"),
        ("", "not an XML file"),
        ('<?xml version="1.0" encoding="latin-99"?><a/>', "not an XML file"),
        ("<a>\0</a>", "not an XML file"),
    ],
)
def test_xml_that_does_harm_or_is_none_is_refused(text: str, message: str) -> None:
    with pytest.raises(UsageError, match=rf"^a\.xml: .*{message}"):
        xml(text.encode(), "a.xml")


def test_depth_counts_open_elements_only() -> None:
    assert len(xml(b"<a>" + b"<b/>" * 1000 + b"</a>", "a.xml")) == 1000
    deepest = b"<a>" * inputs.XML_DEPTH + b"</a>" * inputs.XML_DEPTH
    assert xml(deepest, "a.xml").tag == "a"
