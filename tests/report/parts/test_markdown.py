"""Plain values as markdown: everything is escaped."""

from __future__ import annotations

from report_page import cells

from perfport.report.parts.markdown import code, details, excerpt, fence, table, text, titled


def test_markdown_escapes() -> None:
    assert text("a_b _c_ *d* <e>") == r"a_b \_c\_ \*d\* &lt;e>"
    starts = {"# a": r"\# a", "- a": r"\- a", "> a": r"\> a", "2. a": r"2\. a", "--- ": r"\---", "=": r"\="}
    assert {given: text(given) for given in starts} == starts and text("-3.5 #1 2.5") == "-3.5 #1 2.5"
    assert code("a`b") == "``a`b``" and code("`a`") == "`` `a` ``" and code("") == "–"
    assert fence("```\nx").startswith("````text\n") and details("<b>", "x").count("&lt;b&gt;") == 1
    assert cells(table(["h|1", "h2"], [["a|b", ""], ["c", "d"]], "ll").splitlines()[2]) == [r"a\|b", "–"]
    assert excerpt("\n".join(map(str, range(100)))).splitlines()[12] == "… 70 lines left out …"


def test_a_table_without_rows_has_no_title() -> None:
    assert titled("**T**", ["a"], [], "l") == ""
    assert titled("**T**", ["a"], [["1"]], "l").splitlines()[:3] == ["**T**", "", "| a   |"]
