"""Names as somebody may write them into records who means harm, and pages read back as their readers do."""

from __future__ import annotations

import html.parser
import json
import re
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import report_data as data
from markdown_it import MarkdownIt

from perfport.model.record import Record
from perfport.store.results import Run

ESCAPE = "\x1b[2J\x1b]0;title\x07"
#: What each tries to be: another path, markup, a formula, a sequence for terminals, no XML, too long.
NAMES = {
    "absolute": "/perfport-hostile", "up": "../../x", "further up": "../../../../x",
    "far up": "../../../../../../../../tmp/perfport-hostile", "dots": "..",
    "script": "<script>alert(1)</script>", "image": "![a](http://evil.example/a.png)<img src=http://evil.example/b>",
    "link": "[a](javascript:alert(1))", "attribute": "\" onload=\"alert(1)\" '", "pipe": "a|b", "tick": "a`b``c",
    "newline": "a\n\n# heading\n\n- list", "comment": "--> <!-- end -->", "cdata": "]]>", "entity": "&lt;b&gt;&amp;",
    "escape": f"a{ESCAPE}b", "control": "a\x00\x08\x7f\x9b31mb",
    "bidi": "a\u202egpj.exe\u2066", "format": "a\u200bb\ufeff",
    "no xml": "a\ufffe\uffff\x0b\x0cb", "formula": "=cmd|' /C calc'!A0", "sum": "@SUM(1)", "long": "n" * 5000,
    "longer": "n" * 5001, "small": "rows", "capital": "Rows", "dropped": "rows!", "dropped too": "rows?",
}  # fmt: skip
#: That text may hold which is printed: whatever a name holds.
PRINTABLE = re.compile(
    r"[^\x00-\x08\x0b-\x1f\x7f-\x9f\u200b-\u200f\u202a-\u202e\u2066-\u2069\ufeff\ud800-\udfff\ufffe\uffff]*"
)


def run(folder: Path, names: Mapping[str, str] = NAMES, plots: bool = False) -> Run:
    """Return a stored run with a record for each name, put in after reading: the schema has no part in it.

    Workload, problem, variant, preset and the names of tunables are the name; precision, profile, device and what the
    environment says hold all that a reader shows of them.
    """
    records = [
        data.record(f"v{n}", 0.03 + 0.001 * n, rung=n + 1, **({} if plots else {"ceilings": None}))
        for n in range(len(names))
    ]
    held = data.store(folder, records)
    held.records = [_named(record, name) for record, name in zip(held.records, names.values(), strict=True)]
    held.environment = {**held.environment, **environment(list(names.values()))}
    held.environment["devices"][data.POCL]["kind"] = " ".join(name for name in names.values() if len(name) < 1000)
    return held


def _named(record: Record, name: str) -> Record:
    changed = {"workload": name, "problem": name, "variant": name, "preset": name, "tunables": {name: name}}
    metric = record.metric.model_copy(update={"unit": f"{name} per s"}) if record.metric else None
    return record.model_copy(
        update={"identity": record.identity.model_copy(update=changed), "metric": metric, "extra": {name: name}}
    )


def environment(names: list[str]) -> dict[str, Any]:
    """Return what an environment file holds of free text, made of names."""
    every = " ".join(name for name in names if len(name) < 1000)
    problems = {name: {name: {"title": name, "figures": {name: [name]}}} for name in names}
    device = {**data.device(data.POCL), "chip": every, "driver": every, "name": every, "kind": "cpu"}
    return {
        "run": every, "started": "2026-11-21T12:00:00+00:00", "command": ["perfport", "run", *names[:20]],
        "experiment": {"name": every, "title": every, "file": every, "sha256": every},
        "host": {"cpu": every, "cores": 2, "memory_bytes": 8 << 30, "os": every, "python": every, every: every},
        "versions": {every: every}, "commit": {"hash": every, "dirty": True}, "devices": {data.POCL: device},
        "workloads": {name: {"title": name, "problems": problems[name]} for name in names},
    }  # fmt: skip


def raw(folder: Path, name: str) -> Path:
    """Write a run folder whose files hold a name wherever they hold a name; returns it."""
    held = data.store(folder, [data.record("row_major", 0.05, rung=1), data.record("column_major", 0.04, rung=2)])
    lines = []
    for record in held.records:
        content = json.loads(record.model_dump_json(exclude_none=True))
        content["identity"] |= {"workload": name, "problem": name, "preset": name, "tunables": {name: name}}
        content["identity"]["variant"] = name if record.identity.rung == 1 else f"{name}2"
        lines.append(json.dumps(content))
    (folder / "records.jsonl").write_text("".join(f"{line}\n" for line in lines))
    (folder / "environment.json").write_text(json.dumps({**held.environment, **environment([name])}))
    return folder


class Page(html.parser.HTMLParser):
    """A page as a browser takes it apart: its tags, what it refers to, its attributes that would run."""

    def __init__(self, content: str) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.references: list[str] = []
        self.scripted: list[str] = []
        self.open: list[str] = []
        self.ids: list[str] = []
        self.headings: list[str] = []
        self.policy = ""
        self.feed(content)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        named = {name: value or "" for name, value in attrs}
        self.tags.add(tag)
        self.references += [named[name] for name in ("src", "href", "action", "data") if name in named]
        self.scripted += [name for name in named if name.startswith("on")]
        self.ids += [named["id"]] if "id" in named else []
        if named.get("http-equiv") == "Content-Security-Policy":
            self.policy = named["content"]
        if tag not in ("meta", "img", "input", "hr", "br"):
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        if self.open[-1:] == [tag]:
            self.open.pop()

    def handle_data(self, content: str) -> None:
        if {"h1", "h2", "h3", "h4", "h5"} & set(self.open):
            self.headings.append(content.strip())

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def github(markdown: str) -> Page:
    """Return a page of markdown as a reader takes it that lets raw HTML pass, as GitHub's first step does."""
    return Page(MarkdownIt("commonmark", {"html": True}).enable(["table", "strikethrough"]).render(markdown))


def files_of(folder: Path) -> set[Path]:
    """Return every file and folder below a folder."""
    return set(folder.rglob("*"))


def strays() -> list[Path]:
    """Return what lies where the absolute names lead to, and take it away."""
    found = [path for folder in ("/", "/tmp") for path in Path(folder).glob("perfport-hostile*")]
    for path in found:
        path.unlink() if path.is_file() else shutil.rmtree(path)
    return found
