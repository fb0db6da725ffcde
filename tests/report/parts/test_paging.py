"""Pages that are too long: cut between blocks, nothing lost, nothing folded or fenced torn."""

from __future__ import annotations

import itertools

from hypothesis import given
from hypothesis import strategies as st

from perfport.report.parts.paging import split
from perfport.report.parts.plots import write_page

FOLD = "<details>\n<summary>log</summary>\n\n```text\na\n\n<details>\n\nb\n```\n\n</details>"
BLOCKS = ["Text.", "## Heading", "```text\na\n\n\nb\n```", FOLD, "- one\n- two\n- three", "> quoted\n> more"]


@given(st.lists(st.sampled_from(BLOCKS), min_size=1, max_size=40), st.integers(20, 60))
def test_nothing_is_lost_and_no_page_is_too_long(blocks: list[str], most: int) -> None:
    whole = "\n\n".join(blocks)
    pages = split(whole, most)
    assert "\n\n".join(pages) == whole
    assert all(page.count("\n") < most + 2 for page in pages)
    for page in pages:
        assert page.count("<summary>") == page.count("</details>") and page.count("```") % 2 == 0


def test_a_long_table_is_cut_between_rows_with_its_head() -> None:
    rows = [f"| {n} |" for n in range(100)]
    pages = split("\n".join(["| n |", "|---|", *rows]), 30)
    assert all(page.startswith("| n |\n|---|\n| ") and page.count("\n") < 30 for page in pages)
    assert [line for page in pages for line in page.split("\n")[2:]] == rows


def test_pages_lead_to_each_other(tmp_path) -> None:  # type: ignore[no-untyped-def]
    content = "\n\n".join(["# Long", *(f"block {n}" for n in range(3000))])
    files = write_page(tmp_path / "a b.md", content, [])
    assert [file.name for file in files] == ["a b.md", "a b.2.md", "a b.3.md", "a b.4.md"]
    assert all(file.read_text().count("\n") < 2000 for file in files)
    for before, after in itertools.pairwise(files):
        name = after.name.replace(" ", "%20")
        assert f"Continued in [{after.name}]({name})." in before.read_text().splitlines()[-1]
        assert after.read_text().startswith(f"Continued from [{before.name}]")
    (only,) = write_page(tmp_path / "data.csv", "a\n" * 5000, [])
    assert only.read_text().count("\n") == 5001, "what is no page is one file"
