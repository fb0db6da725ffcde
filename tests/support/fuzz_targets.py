"""The project's readers as targets of fuzzing: each with small files that it reads, and what it may raise."""

from __future__ import annotations

import io
import json
import logging
import shutil
import tempfile
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Literal

import numpy as np
import report_data
import search_log
import yaml
from PIL import Image

from perfport.model.errors import LOG, CompileError, PerfportError, UsageError

ROOT = Path(__file__).parents[2]
#: Characters of a message: one that quotes a file has to stop somewhere.
MESSAGE_LIMIT = 100_000


@dataclass(frozen=True)
class Target:
    """One reader.

    Attributes
    ----------
    read : callable
        Reads a file with everything that a command does before it believes its content.
    name : str
        Of the file; readers go by its suffix.
    seeds : callable
        Returns contents that are read without an error, by name.
    form : str
        How a mutation keeps the outer form, so that more of them get past it: values of JSON (one for each line, or
        as YAML), members of a zip archive, words of a text, or plain bytes.
    raises : class of error
    """

    read: Callable[[Path], Any]
    name: str
    seeds: Callable[[], dict[str, bytes]]
    form: Literal["bytes", "words", "json", "lines", "yaml", "zip"] = "bytes"
    raises: type[PerfportError] = UsageError


class Broken(AssertionError):
    """The reader answered in another way than documented."""


class _LeftOut(logging.Handler):
    """What a reader says that it leaves out."""

    def __init__(self) -> None:
        super().__init__()
        self.said: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.said.append(record.getMessage())


def tried(target: Target, content: bytes, folder: Path) -> str:
    """Read a content as a file in a folder; returns what the reader says of it, nothing if it takes all of it.

    Raises
    ------
    Broken
        For a message that does not end, or does not name the file.
    Exception
        Whatever else the reader raises: a fault of the reader.
    """
    path = folder / target.name
    path.write_bytes(content)
    left_out = _LeftOut()
    LOG.addHandler(left_out)
    try:
        target.read(path)
    except target.raises as error:
        left_out.said.append(str(error))
    finally:
        LOG.removeHandler(left_out)
    for message in left_out.said:
        if len(message) > MESSAGE_LIMIT:
            raise Broken(f"a message of {len(message)} characters: {message[:200]}")
        if target.raises is UsageError and path.name not in message:
            raise Broken(f"a message that does not name {path.name}: {message[:200]}")
    return "\n".join(left_out.said)


# --- Files of the suite -------------------------------------------------------------------------------------------


@cache
def _beside() -> bytes:
    return json.dumps(report_data.environment()).encode()


def _records(path: Path) -> None:
    from perfport.store.results import Run, faults

    (path.parent / "environment.json").write_bytes(_beside())
    faults(path.parent)
    _collected(Run(path.parent))


def _collected(run: Any) -> None:
    """What every report begins with."""
    from perfport.store.collection import Collection

    collection = Collection([run])
    assert all(map(collection.label, collection.places)) and collection.families is not None
    assert collection.comparable is not None


def _environment(path: Path) -> None:
    from perfport.store.results import Run

    (path.parent / "records.jsonl").write_bytes(_lines()["ladder"])
    _collected(Run(path.parent))


@cache
def _lines() -> dict[str, bytes]:
    records = report_data.ladder(report_data.POCL)[:2], report_data.every_status()
    return {
        name: b"".join(record.model_dump_json(exclude_none=True).encode() + b"\n" for record in held)
        for name, held in zip(("ladder", "statuses"), records, strict=True)
    }


def _environments() -> dict[str, bytes]:
    own = report_data.environment((report_data.POCL,))
    return {"one": json.dumps(own).encode(), "bare": json.dumps({"schema_version": own["schema_version"]}).encode()}


def _experiment(path: Path) -> None:
    from perfport.run.experiment import load

    load(path)


def _profile(path: Path) -> None:
    from perfport.machine.device_profile import load_profile

    load_profile(path)


def _tuned() -> dict[str, bytes]:
    """A profile with what a search has found in it."""
    content = yaml.safe_load((ROOT / "device_profiles" / "h200.yaml").read_bytes())
    entry = {
        "parameters": {"group": 64, "form": "a b"}, "next": [{"group": 32, "form": "a"}], "date": "2026-11-24",
        "driver": "3.1", "commit": "c", "presets": {"quick": 1.0}, "tried": 3, "of": 9, "seed": 1, "share": 0.5,
        "gain": {"value": 2.0, "low": 1.5, "high": 2.5},
    }  # fmt: skip
    sizes = [entry, {**entry, "parameters": {}, "presets": {"full": 1.0, "large": 2.0}}]
    held = _shipped("device_profiles/hd7970.yaml", 2)()
    found = {"cuda:nvidia": {"demo/rows/tuned": entry, "demo/rows/b": sizes}}
    return {**held, "tuned": yaml.safe_dump({**content, "tuned": found}).encode()}


def _search(path: Path) -> None:
    from perfport.report.pages.tune import by_place, ended, gains, held_out, lost, means, repeated, searched, spaces
    from perfport.tune.anatomy import found

    searches = [found(path.parent)]
    ends = ended(searches)
    assert searched(searches) and means(ends) and gains(ends) and isinstance(repeated(ends), str)
    for place, own in by_place(searches).items():
        assert spaces(own) and isinstance(lost(held_out(searches, place)), str)


def _searches() -> dict[str, bytes]:
    """Short ones: a forest for each of a hundred mutations would take minutes."""
    held = search_log.entries()
    kept = [*held[:10], *held[-4:]]
    return {"short": b"".join(entry.model_dump_json().encode() + b"\n" for entry in kept)}


def _cache(path: Path) -> None:
    from perfport.interop.kernel_tuner import read_cache

    measured = read_cache(path)
    assert measured.best > 0 and measured.space.size


CACHE = {
    "device_name": "A GPU", "kernel_name": "k", "tune_params_keys": ["block", "tile"],
    "tune_params": {"block": [16, 32], "tile": [1, 2]},
    "cache": {
        "16,1": {"block": 16, "tile": 1, "time": 3.5}, "32,1": {"block": 32, "tile": 1, "time": "RuntimeFailedConfig"},
    },
}  # fmt: skip


def _claims(path: Path) -> None:
    from perfport.judge.claims.ledger import read

    for claim in read(path):
        assert claim.quantity and claim.threshold


def _exhibits(path: Path) -> None:
    from perfport.judge.exhibits import read

    for exhibit in read(path).exhibits:
        assert all(series.title and exhibit.quantity(series) for series in exhibit.series)


def _published(path: Path) -> None:
    from perfport.model.published import read

    read(path)


def _shipped(name: str, most: int) -> Callable[[], dict[str, bytes]]:
    """A shipped file, of each list its first entries."""

    def seeds() -> dict[str, bytes]:
        content = _first(yaml.safe_load((ROOT / name).read_text()), most)
        return {Path(name).stem: yaml.safe_dump(content, sort_keys=False).encode()}

    return seeds


def _first(value: Any, most: int) -> Any:
    if isinstance(value, dict):
        return {key: _first(part, most) for key, part in value.items()}
    return [_first(part, most) for part in value[:most]] if isinstance(value, list) else value


def _imports(form: str) -> Callable[[Path], None]:
    def read(path: Path) -> None:
        from perfport.interop.imports import Source, adopt
        from perfport.store.results import Run

        out = path.parent / "adopted"
        shutil.rmtree(out, ignore_errors=True)
        adopt(Source(path, form), _own_run(), "demo/rows", out, [])
        assert Run(out).records

    return read


@cache
def _own_run() -> Any:
    return report_data.store(Path(tempfile.mkdtemp()) / "own", report_data.ladder(report_data.POCL)[:1])


def _foreign(content: Any) -> Callable[[], dict[str, bytes]]:
    return lambda: {"small": json.dumps(content).encode()}


GOOGLE = {"name": "a", "run_type": "iteration", "real_time": 2.0, "time_unit": "us"}
PYPERF = {"metadata": {"name": "a", "unit": "second"}, "runs": [{"values": [0.1, 0.2]}]}
FOREIGN: dict[str, Any] = {
    "pytest-benchmark": {"benchmarks": [{"fullname": "a", "stats": {"data": [0.1, 0.2, 0.3]}}]},
    "google-benchmark": {"context": {}, "benchmarks": [GOOGLE, GOOGLE]},
    "pyperf": {"version": "1.0", "metadata": {}, "benchmarks": [PYPERF]},
}


def _history(path: Path) -> None:
    from perfport.nightly.history import History, read_night

    read_night(path)
    history = History(path.parent)
    for series in history.series.values():
        assert series.place.title
        history.events(series)


def _nights() -> dict[str, bytes]:
    from history_data import night

    from perfport.nightly.history import _as_json

    return {str(cases): _as_json(night(1, np.arange(1, 1 + cases) * 1e-3)).encode() for cases in (1, 3)}


def _accepted(path: Path) -> None:
    from perfport.nightly.accepted import Accepted

    for entry in Accepted(path).entries:
        assert entry.of and entry.since


ACCEPTED = """perfport_accepted: 1
levels:
- {case: nightly/double clock_b, device: 'opencl:pocl:0 (chip)', experiment: weeks,
  since: '2026-11-04T02:00:00+00:00', event: driver 580 -> 590, change: +10.2 %, reason: why}
- {case: c, device: d, experiment: e, since: '2026-11-04T02:00:00Z'}
"""


# --- Inputs of workloads and compilers ----------------------------------------------------------------------------


def _cascade(path: Path) -> None:
    from perfport.workloads.face_detection.cascade import read

    read(path).offsets(100, 5000)


CASCADE = b"""<?xml version="1.0"?>
<opencv_storage><cascade type_id="opencv-cascade-classifier"><stageType>BOOST</stageType><featureType>HAAR</featureType>
<height>10</height><width>12</width>
<stages><_><stageThreshold>-0.5</stageThreshold><weakClassifiers>
<_><internalNodes>0 -1 0 -0.25</internalNodes><leafValues>0.5 -0.75</leafValues></_>
<_><internalNodes>1 0 1 0.125 -1 -2 0 0.5</internalNodes><leafValues>1 2 3</leafValues></_></weakClassifiers></_>
</stages>
<features><_><rects><_>2 1 6 4 -1.</_><_>2 1 3 4 2.</_></rects><tilted>0</tilted></_>
<_><rects><_>5 1 3 2 -1.</_><_>5 1 3 1 2.</_></rects><tilted>1</tilted></_></features>
</cascade></opencv_storage>
"""


def _libsvm(path: Path) -> None:
    from perfport.workloads.svm_rbf.data import load

    load(str(path), None, 1)


def _arrays(path: Path) -> None:
    from perfport.workloads.gdn.data import load_layer
    from perfport.workloads.sparse_conv.operators import Operator
    from perfport.workloads.sparse_conv.weights import check, load

    with suppress(UsageError):
        load_layer(path)
    check(load(path), Operator(3, 4, 3, 3, 5, 5), str(path))


def _npz(**arrays: np.ndarray) -> bytes:
    file = io.BytesIO()
    np.savez(file, **arrays)  # type: ignore[arg-type]
    return file.getvalue()


def _layers() -> dict[str, bytes]:
    arrays = {"weights": np.ones((4, 3, 3, 3), np.float32), "gamma": np.eye(2), "beta": np.ones(2, np.float16)}
    packed = io.BytesIO()
    np.savez_compressed(packed, **arrays)  # type: ignore[arg-type]
    return {"stored": _npz(**arrays), "deflated": packed.getvalue()}


def _points(path: Path) -> None:
    from perfport.workloads.vocab_tree.data import read

    read(path)


def _npys() -> dict[str, bytes]:
    held = {}
    for dtype in (np.uint8, np.int64, np.float32):
        file = io.BytesIO()
        np.save(file, np.arange(12, dtype=dtype).reshape(3, 4))
        held[np.dtype(dtype).name] = file.getvalue()
    return held


def _vectors(dtype: str) -> Callable[[], dict[str, bytes]]:
    row = np.int32(4).tobytes() + np.arange(4, dtype=dtype).tobytes()
    return lambda: {"one": row, "three": 3 * row}


def _tree(path: Path) -> None:
    from perfport.workloads.vocab_tree.query import quantise
    from perfport.workloads.vocab_tree.tree import load

    tree = load(path)
    quantise(tree, np.zeros((1, tree.dims), np.uint8))


def _trees() -> dict[str, bytes]:
    header = {"format": "perfport vocabulary tree 1", "clusters": 2, "dims": 3, "levels": 2, "fraction_bits": 8}
    arrays: dict[str, np.ndarray] = {"header": np.array(json.dumps(header)), "points": np.arange(3, dtype=np.uint32)}
    for number, paths in enumerate(([0], [1])):
        arrays[f"paths_{number}"] = np.array(paths, np.uint64)
        arrays[f"centres_{number}"] = np.arange(6, dtype=np.uint16).reshape(1, 2, 3)
        arrays[f"counts_{number}"] = np.array([[1, 2]], np.uint32)
    return {"tree": _npz(**arrays)}


def _image(path: Path) -> None:
    from perfport.workloads.face_detection.images import grey, read

    grey(read(path))


def _images() -> dict[str, bytes]:
    from perfport.workloads.face_detection.images import FORMATS

    pixels = np.arange(8 * 8 * 3, dtype=np.uint8).reshape(8, 8, 3)
    held = {}
    for form in FORMATS:
        for mode in ("L", "P", "RGB"):
            with suppress(OSError), io.BytesIO() as file:  # not every format has every mode
                Image.fromarray(pixels).convert(mode).save(file, form)
                held[f"{form}-{mode}"] = file.getvalue()
    return held


def _ptx(path: Path) -> None:
    from perfport.workloads.sparse_conv.ptx import Program
    from perfport.workloads.sparse_conv.specialise import specialise

    program = Program.of(path.read_text(errors="replace"))
    specialise(program, {0x3FC00000: 2.0, 0x3FA00000: 0.0})


PTX = b"""\
.version 9.0
.visible .entry operator_template(
\t.reg .f32 \t%f<9>;
\tld.global.nc.f32 \t%f1, [%rd1+4];
\tmov.f32 \t%f9, 0f3FC00000;
\tfma.rn.f32 \t%f2, %f1, %f9, 0f00000000;
\tfma.rn.f32 \t%f3, %f1, 0f3FA00000, %f2;
\tmul.f32 \t%f4, %f1, %f1;
\tsetp.lt.s32 \t%p1, %r1, %r2;
\t@%p1 bra \t$L__BB0_2;
\tst.global.v2.f32 \t[%rd1+8], {%f2, %f3};
$L__BB0_2:
\tbar.sync \t0;
\tst.shared.f32 \t[%rd2], %f1;
\tret;
"""

TARGETS: dict[str, Target] = {
    "records": Target(_records, "records.jsonl", _lines, "lines"),
    "environment": Target(_environment, "environment.json", _environments, "json"),
    "experiment": Target(_experiment, "experiment.yaml", _shipped("experiments/quick.yaml", 2), "yaml"),
    "profile": Target(_profile, "profile.yaml", _tuned, "yaml"),
    "search": Target(_search, "tune.jsonl", _searches, "lines"),
    "kernel-tuner": Target(_cache, "cache.json", lambda: {"small": json.dumps(CACHE).encode()}, "json"),
    "exhibits": Target(_exhibits, "exhibits.yaml", _shipped("results/published/exhibits/gdn.yaml", 2), "yaml"),
    "claims": Target(_claims, "claims.yaml", _shipped("workloads/gdn/claims.yaml", 2), "yaml"),
    "published": Target(_published, "published.yaml", _shipped("results/published/gdn.yaml", 2), "yaml"),
    **{form: Target(_imports(form), "theirs.json", _foreign(content), "json") for form, content in FOREIGN.items()},
    "history": Target(_history, "night.json", _nights, "json"),
    "accepted": Target(_accepted, "accepted.yaml", lambda: {"two": ACCEPTED.encode()}, "yaml"),
    "cascade": Target(_cascade, "cascade.xml", lambda: {"small": CASCADE}, "words"),
    "libsvm": Target(_libsvm, "mine.libsvm", lambda: {"two": b"1 1:0.5 3:2 # points\n-1 2:1e-3\n"}, "words"),
    "npz": Target(_arrays, "layer.npz", _layers, "zip"),
    "npy": Target(_points, "points.npy", _npys),
    "bvecs": Target(_points, "points.bvecs", _vectors("<u1")),
    "fvecs": Target(_points, "points.fvecs", _vectors("<f4")),
    "tree": Target(_tree, "tree.npz", _trees, "zip"),
    "image": Target(_image, "image.png", _images),
    "ptx": Target(_ptx, "template.ptx", lambda: {"small": PTX}, "words", CompileError),
}
