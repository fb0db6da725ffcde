"""HTML: values are escaped unless they are markup, plots are in the text, pages refer to each other."""

from __future__ import annotations

import base64
import hashlib
import html

import jinja2
import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from markupsafe import Markup

from perfport.report.parts import web
from perfport.report.parts.plots import Plot

HOSTILE = "<script>alert('x')</script> & \"more\""


def test_values_are_escaped_and_markup_is_not() -> None:
    fill = web.template('<p title="{{ name }}">{{ name }}{{ body }}</p>')
    made = fill(name=HOSTILE, body=Markup("<b>b</b>"))
    assert "<script>" not in made and made.count("&lt;script&gt;") == 2 and "<b>b</b>" in made
    assert isinstance(made, Markup), "so that it can be part of another"


def test_a_name_without_a_value_is_an_error() -> None:
    with pytest.raises(jinja2.UndefinedError):
        web.template("{{ nothing }}")()


def test_a_document_escapes_its_title_and_holds_its_plots() -> None:
    plot = Plot("a b.svg", b"<svg/>", "alt", "caption")
    made = web.document(HOSTILE, "[other](three.md)\n\n![alt](f/a%20b.svg)\n\n| a |\n|---|\n| 1 |", [plot])
    assert "&lt;script&gt;" in made and "<script>" not in made
    assert 'href="three.md"' in made and 'src="data:image/svg+xml;base64,' in made
    assert '<div class="wide"><table>' in made
    assert made.startswith("<!DOCTYPE html>") and made.endswith("</html>")


def test_a_page_runs_the_scripts_that_it_was_given_alone() -> None:
    made = web.frame("T", Markup("<p></p>"), "", ("let a = 1;", "let b = 2;"))
    hashes = [base64.b64encode(hashlib.sha256(script).digest()).decode() for script in (b"let a = 1;", b"let b = 2;")]
    policy = html.unescape(made)
    assert f"script-src 'sha256-{hashes[0]}' 'sha256-{hashes[1]}'" in policy and made.count("<script>") == 2
    assert "script-src" not in web.frame("T", Markup("<p></p>"))


PARAGRAPH, FENCED = "Some text\n\n", "```text\na\n\nb ````\n\n| c |\n```\n\n"
BLOCKS = [
    PARAGRAPH, FENCED, "# Title\n\n", "- one\n\n- two\n\n  more of it\n\n", "| a | b |\n|---|---|\n| 1 | 2 |\n\n",
    "    code\n\n    more\n\n", "**bold** text\n\n", "* item\n\n* item\n\n", "1. one\n\n2. two\n\n",
    "![alt](a.svg)\n\n",
    "~~~~\n```\n\nText\n~~~\n\nText\n~~~~~\n\n", "````text\n```\n\nText\n````\n\n",
    "<details>\n<summary>log</summary>\n\n" + FENCED + "</details>\n\n", "> quoted\n\n> again\n\n",
]  # fmt: skip


@given(st.lists(st.sampled_from(BLOCKS), max_size=8))
def test_a_page_in_parts_is_the_page(blocks: list[str]) -> None:
    page = "".join(blocks)
    parser = MarkdownIt("commonmark", {"html": False}).enable("table")
    parts = list(web._parts(page))
    assert "".join(map(parser.render, parts)) == parser.render(page)
    assert len(parts) >= blocks.count(PARAGRAPH), "each paragraph begins one"
