"""Names of records, histories and imports never become paths: nothing is written beside its folder or over another."""

from __future__ import annotations

import itertools
import json
import string
from collections.abc import Callable
from pathlib import Path

import hostile
import pytest
import report_data as data
from hypothesis import given
from hypothesis import strategies as st

from perfport.interop import exports
from perfport.model.errors import InfrastructureError
from perfport.model.untrusted import inside, slug
from perfport.nightly import history
from perfport.report.pages import crosstuning, portability, run, suite
from perfport.report.parts.plots import Plot, write_page
from perfport.run.experiment import Experiment
from perfport.store.collection import Collection

PICTURE = {"jpeg": "/9j/2wBDAAMCAgIC", "caption": "a picture"}


@given(st.lists(st.text(alphabet=st.sampled_from("aA-._/ 0f\n"), max_size=6), min_size=1, max_size=3))
def test_a_slug_is_one_part_of_a_path_of_safe_characters(parts: list[str]) -> None:
    name = slug(*parts)
    assert set(name) <= set(string.ascii_lowercase + string.digits + "_.-") and name[0] not in ".-" and len(name) <= 120


def test_different_names_have_different_slugs() -> None:
    letters = ["".join(word) for n in (0, 1, 2, 3) for word in itertools.product("aA-.1", repeat=n)]
    names = [(one,) for one in letters] + list(itertools.product(letters[:31], repeat=2))
    alone = {slug(*name) for name in names if len(name) == 1}
    assert len(alone) == len(letters), "also where file systems ignore case"
    assert len({slug(*name) for name in names if len(name) == 2}) == len(names) - len(letters)


def test_who_knows_the_digest_of_a_name_cannot_take_its_place() -> None:
    for name in ("Rows", "a b", "x" * 5000):
        assert slug(slug(name)) != slug(name)
        readable, _, digest = slug(name).rpartition("-")
        assert slug(readable, digest) != slug(name)


def test_names_of_the_suite_stay_as_they_are() -> None:
    assert slug("vocab_tree") == "vocab_tree" and slug("gdn", "gdn_step", "tf32") == "gdn-gdn_step-tf32"
    assert slug("nightly-20261121-021500") == "nightly-20261121-021500"


@pytest.mark.parametrize("part", ["/x", "../x", "..", "a/../../x", "", ".", "a\x00b", "link/x", "link", "circle/x"])
def test_a_path_that_leaves_its_folder_is_refused(tmp_path: Path, part: str) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    (folder / "link").symlink_to(tmp_path / "elsewhere")
    (folder / "circle").symlink_to(folder / "circle")
    with pytest.raises(InfrastructureError, match="leaves the folder"):
        inside(folder, part)
    assert inside(folder, "a", "b.md") == folder / "a" / "b.md"


def made(tmp_path: Path, write: Callable[[Path], object]) -> set[str]:
    """Return the names of the files that something writes into a folder, and assert that it writes nowhere else."""
    before = hostile.files_of(tmp_path)
    out = tmp_path / "a" / "b" / "out"
    write(out)
    written = hostile.files_of(tmp_path) - before
    outside = {path for path in written if out not in path.parents and path not in (out, *out.parents)}
    assert hostile.strays() == [] and outside == set()
    return {str(path.relative_to(out)) for path in written if path.is_file()}


def test_the_suite_report_keeps_every_name_in_its_folder_and_a_page_for_each(tmp_path: Path) -> None:
    held = hostile.run(tmp_path / "results" / "run")
    files = made(tmp_path, lambda out: suite.render(Collection([held]), {}, [], out / "suite.md"))
    assert {"suite.md", "suite.html", "claims.md"} < files
    pages = {name for name in files if name.startswith("suite/") and name.endswith(".md")}
    assert len(pages) == len(hostile.NAMES), "those too that differ by case, or by what a file name cannot have"


def test_plots_of_the_suite_report_are_kept_apart(tmp_path: Path) -> None:
    """Plots of ``a-b/c`` and ``a/b-c``, which joined by a dash are one name, and of names that differ by their case."""
    held = hostile.run(
        tmp_path / "results" / "run", {"one": "one", "two": "two", "up": "../../x", "case": "X"}, plots=True
    )
    for record, (workload, problem) in zip(
        held.records, [("a-b", "c"), ("a", "b-c"), ("../../x", "p"), ("X", "p")], strict=True
    ):
        record.identity.workload, record.identity.problem = workload, problem
    files = made(tmp_path, lambda out: suite.render(Collection([held]), {}, [], out / "suite.md"))
    for kind in ("shares", "roofline"):
        assert len([name for name in files if name.endswith(f"-{kind}.svg")]) == 4, sorted(files)


def test_the_report_of_a_run_keeps_plots_and_pictures_in_its_folder(tmp_path: Path) -> None:
    names = {key: hostile.NAMES[key] for key in ("absolute", "up", "far up", "capital", "small")}
    held = hostile.run(tmp_path / "results" / "run", names, plots=True)
    held.records = [record.model_copy(update={"extra": {"picture": PICTURE}}) for record in held.records]
    again = held.records[0].model_copy(update={"key": "f" * 16})
    held.records.append(again.model_copy(update={"identity": again.identity.model_copy(update={"tunables": {"n": 1}})}))
    files = made(tmp_path, lambda out: run.render([held], out / "report.md"))
    assert len([name for name in files if name.endswith(".jpg")]) == len(held.records), "two of one variant"
    assert len([name for name in files if name.endswith("-share.svg")]) == len(names)


def test_a_picture_is_a_picture(tmp_path: Path) -> None:
    """Whoever wrote the record chose its bytes: what is no JPEG is not written."""
    for content in ("IyEvYmluL3No", "no base64!", 7, None):
        held = data.store(tmp_path / "run", [data.record("a", extra={"picture": {**PICTURE, "jpeg": content}})])
        run.render([held], tmp_path / "out" / "report.md")
        assert not list((tmp_path / "out").rglob("*.jpg"))


def test_numbered_names_of_a_report_do_not_meet_names_that_end_so(tmp_path: Path) -> None:
    """Two ladders of one name get a number: ``x-fp32.2`` must not be the plot of a precision ``fp32.2``."""
    settings = [{"points": 1}, {"points": 2}]
    records = [data.record("a", 0.04, parameters=each, key=f"{n:016x}") for n, each in enumerate(settings)]
    records.append(data.record("a", 0.05, precision="fp32.2", key="f" * 16))
    held = data.store(tmp_path / "results", records)
    files = made(tmp_path, lambda out: run.render([held], out / "report.md"))
    assert len([name for name in files if name.endswith("-share.svg")]) == 3


CLASHING = {key: hostile.NAMES[key] for key in ("up", "small", "capital", "dropped")}


def test_cascades_are_kept_apart_and_in_their_folder(tmp_path: Path) -> None:
    ids = (data.POCL, data.INTEL, data.GPU)
    runs = [hostile.run(tmp_path / str(n), CLASHING, plots=True) for n in range(len(ids))]
    for one, id_ in zip(runs, ids, strict=True):
        one.environment["devices"] = {id_: data.device(id_, chip=f"chip {id_}")}
        for record in one.records:
            record.identity.devices = [id_]
    held = Collection(runs)
    shown = portability.view(held, held.places, "all")
    assert len({plot.name for plot in shown.plots}) == len(shown.plots) == len(CLASHING)
    made(tmp_path, lambda out: write_page(out / "page.md", shown.markdown, shown.plots))


def test_heat_maps_are_kept_apart_and_in_their_folder(tmp_path: Path) -> None:
    held = hostile.run(tmp_path / "run", CLASHING, plots=True)
    held.environment["defaults"] = {data.POCL: {f"{name}/{name}/{name}": {} for name in CLASHING.values()}}
    for record in held.records:
        record.identity.tunables = {}
    held.records += [
        record.model_copy(
            update={"key": f"{n:016x}", "identity": record.identity.model_copy(update={"profile": "hd7970"})}
        )
        for n, record in enumerate(held.records)
    ]
    shown = crosstuning.view(Collection([held]))
    assert len({plot.name for plot in shown.plots}) == len(shown.plots) == len(CLASHING)
    made(tmp_path, lambda out: write_page(out / "page.md", shown.markdown, shown.plots))


def test_links_in_the_folder_of_plots_are_not_followed(tmp_path: Path) -> None:
    """Somebody who may write there leaves a link to a file of yours where a plot will be."""
    mine, out = tmp_path / "mine.txt", tmp_path / "out"
    mine.write_text("mine")
    (out / "report").mkdir(parents=True)
    (out / "report" / "a.svg").symlink_to(mine)
    with pytest.raises(InfrastructureError, match="leaves the folder"):
        write_page(out / "report.md", "# A", [Plot("a.svg", b"<svg/>", "", "")])
    assert mine.read_text() == "mine"
    (out / "suite").symlink_to(tmp_path)
    with pytest.raises(InfrastructureError, match="leaves the folder"):
        suite.render(Collection([hostile.run(tmp_path / "run", {"a": "a"})]), {}, [], out / "suite.md")
    assert not (tmp_path / "a.md").exists()


def test_history_files_stay_in_the_history(tmp_path: Path) -> None:
    held = hostile.run(tmp_path / "run")
    names = set()
    for name in hostile.NAMES.values():
        held.environment["run"] = name
        names |= made(tmp_path / slug(name), lambda out: history.add(held, out))
    assert len(names) == len(hostile.NAMES) and all("/" not in name for name in names)


def test_the_file_beside_an_export_follows_no_link(tmp_path: Path) -> None:
    """otava has a configuration beside its table."""
    mine = tmp_path / "mine.yaml"
    mine.write_text("mine")
    out = tmp_path / "out"
    out.mkdir()
    (out / "table.yaml").symlink_to(mine)
    runs = [data.store(tmp_path / name, [data.record("a")]) for name in ("one", "two")]
    with pytest.raises(InfrastructureError, match="leaves the folder"):
        exports.export(runs, "otava", out / "table.csv")
    assert mine.read_text() == "mine"


@pytest.mark.parametrize("path", ["/etc/passwd.md", "../x.md", "a/../../x.md", "Makefile", ".bashrc", "a\nb.md"])
def test_an_experiment_chooses_no_file_outside_the_current_folder(path: str) -> None:
    content = {"name": "a", "experiments": [{"workload": "w", "problem": "p"}], "report": {"path": path}}
    with pytest.raises(ValueError, match="markdown file below the current folder"):
        Experiment.model_validate(content)
    Experiment.model_validate({**content, "report": {"path": "reports/a.md"}})


@pytest.mark.parametrize("key", ["absolute", "further up", "far up", "escape", "long"])
def test_no_command_writes_outside_its_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, key: str) -> None:
    """Every command that reads records, in a folder of its own; where the schema refuses the name, with code 2."""
    name = hostile.NAMES[key]
    runs = hostile.raw(tmp_path / "results" / "one", name)
    hostile.raw(tmp_path / "results" / "two", name)
    for folder in runs.parent.iterdir():
        (folder / "experiment.yaml").write_text("name: a\nexperiments: [{workload: a, problem: b}]\n")
    here = tmp_path / "a" / "b" / "here"
    here.mkdir(parents=True)
    monkeypatch.chdir(here)
    before = hostile.files_of(tmp_path)
    results = runs.parent
    commands: list[list[object]] = [
        ["report", results], ["report", "--suite", results], ["table", results, "-o", "t.md"],
        *(["table", results, "--format", form, "-o", f"t.{form}"] for form in ("csv", "json", "html")),
        ["compare", runs, results / "two", "-o", "c.md"], ["claims", results, "-o", "cl.md"],
        ["portability", results, "-o", "p.md", "--export", "p3.csv"], ["crosstuning", results, "-o", "x.md"],
        ["stale", results, "-o", "s.md"], ["explain", "--suite", results, "-o", "w.md"],
        ["explain", name, results, "-o", "e.md"], ["history", "add", runs, "--into", "nights"],
        ["history", "--in", "nights", "--html", "h.html"], ["history", "--in", "nights", "-o", "h.md"],
        ["check", runs, "--baseline", results / "two", "--junit", "j.xml", "-o", "ch.md"],
        *(["export", runs, "--format", form, "-o", f"e.{form}"] for form in [*exports.OF_ONE_RUN, *exports.OF_MANY]),
        ["validate", results],
    ]  # fmt: skip
    for command in commands:
        assert data.call(monkeypatch, *command) in (0, 2, 3, 4, 5, 6), command
    outside = {path for path in hostile.files_of(tmp_path) - before if here not in path.parents}
    assert hostile.strays() == [] and outside == set()


def test_imported_names_stay_names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = tmp_path / "bench.json"
    benchmarks = [{"fullname": name, "stats": {"data": [0.01] * 8}} for name in hostile.NAMES.values()]
    source.write_text(json.dumps({"benchmarks": benchmarks}))
    data.store(tmp_path / "run", [data.record("a")])
    here = tmp_path / "a" / "here"
    here.mkdir(parents=True)
    monkeypatch.chdir(here)
    before = hostile.files_of(tmp_path)
    words = ["import", source, "--format", "pytest-benchmark", "--beside", tmp_path / "run", "--as", "demo/rows"]
    assert data.call(monkeypatch, *words, "--out", "imported") in (0, 2)
    if Path("imported").exists():
        assert data.call(monkeypatch, "report", "imported", tmp_path / "run") == 0
        assert data.call(monkeypatch, "report", "--suite", "imported", tmp_path / "run") == 0
    assert {path for path in hostile.files_of(tmp_path) - before if here not in path.parents} == set()
