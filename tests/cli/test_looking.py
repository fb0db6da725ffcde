"""Commands that look at what there is: devices, workloads, single cases."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from commands import Cli

from perfport.model.record import Record
from perfport.store.results import Run

FAULTY = Path(__file__).parents[1] / "data" / "faulty"


def test_devices(main: Cli, opencl_infos: list[Any]) -> None:
    code, out, _ = main("devices", "--json")
    found = json.loads(out)
    assert code == 0 and [entry["id"] for entry in found] == [info.id for info in opencl_infos]
    assert all(entry["healthy"] and entry["memory_bytes"] > 0 and entry["driver"] for entry in found)
    cpus = [entry for entry in found if entry["kind"] == "cpu"]
    hidden = {"Intel(R) Xeon(R) Processor": "xeon", "AMD EPYC": "epyc"}  # whose model a hypervisor does not tell
    for entry in cpus:
        named = [profile for name, profile in hidden.items() if entry["name"].endswith(name)]
        assert entry["profile"] in ("generic_cpu", *named)
    code, out, _ = main("devices")
    assert code == 0 and all(info.id in out and info.driver in out for info in opencl_infos)


def test_list(main: Cli) -> None:
    code, out, _ = main("list", "svm_rbf", "--json")
    rows = {(row["problem"], row["variant"]): row for row in json.loads(out)}
    assert code == 0
    assert "opencl:" in rows["rbf_rows", "vectorized"]["runs here"]
    assert rows["rbf_rows", "vectorized"]["role"] == "rung"
    code, out, _ = main("list", "faulty", "--workloads", FAULTY)
    lines = {line.split()[2]: line for line in out.splitlines() if line.startswith("double ")}
    assert "no: needs cuda" in lines["needs_cuda"] and "no_such_module_anywhere" in lines["missing_module"]
    for option, name in (("--profiles", "hd7970"), ("--experiments", "quick")):
        code, out, _ = main("list", option, discover=False)
        assert code == 0 and name in out


def records(folder: Path) -> dict[str, Record]:
    """The records of the only run below a folder, by variant."""
    (run,) = (folder / "results").iterdir()
    return {record.identity.variant: record for record in Run(run).records}


def test_show_a_record_its_log_and_run_it_again(
    stored: Path, main: Cli, perfport: Any, no_ceilings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(stored)
    found = records(stored)
    good, broken = found["good"], found["no_compile"]
    code, out, _ = main("show", good.key, "--workloads", FAULTY)
    assert code == 0 and good.key in out and len(out.splitlines()) <= 24
    code, out, _ = main("show", broken.key, "--workloads", FAULTY)
    assert code == 0 and "broken.cl:2" in out and "y[0] = planted_undeclared_name;" in out
    code, out, _ = main("show", good.key, "--json", "--workloads", FAULTY)
    shown = json.loads(out)
    assert code == 0 and shown["key"] == good.key and shown["identity"]["tunables"] == {"shade": 2}
    code, out, _ = main("show", broken.key, "--log", "--workloads", FAULTY)
    assert code == 0 and "planted_undeclared_name" in out
    code, _, err = main("show", "feedfeedfeedfeed", "--workloads", FAULTY)
    assert code == 2 and "no record of this key" in err

    for record, expected in ((good, 0), (broken, 4)):
        done = perfport("show", record.key, "--rerun", "--workloads", FAULTY, env=no_ceilings, cwd=stored)
        assert done.returncode == expected, done.stderr
        (again,) = sorted((stored / "results").glob("rerun-*"))
        (fresh,) = Run(again).records
        assert (fresh.key, fresh.seed, fresh.identity) == (record.key, record.seed, record.identity)
        for file in again.iterdir():
            file.unlink()
        again.rmdir()


def test_show_names(main: Cli) -> None:
    code, out, _ = main("show", "svm_rbf", discover=False)
    assert code == 2
    code, out, _ = main("show", "svm_rbf/rbf_rows/local_memory", "--json", discover=False)
    assert code == 0 and json.loads(out)["tunables"]["group"]["values"]


@pytest.mark.parametrize("target", ["sm_75", "sm_90"])
def test_show_ptx_and_source_without_a_gpu(main: Cli, target: str) -> None:
    pytest.importorskip("cupy_backends.cuda.libs.nvrtc", exc_type=ImportError)
    code, out, _ = main("show", "svm_rbf/rbf_rows/vectorized", "--ptx", "--target", target, discover=False)
    assert code == 0 and f".target {target}" in out and ".entry vectorized" in out
    code, out, _ = main("show", "svm_rbf/rbf_rows/vectorized", "--source", discover=False)
    assert code == 0 and "void vectorized(" in out and "-DNDIM=37" in out
