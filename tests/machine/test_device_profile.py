"""Device profiles: what ships is complete, sourced and consistent by arithmetic; what is wrong is refused by name."""

from __future__ import annotations

import copy
import re
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest
import yaml

from perfport.machine.device_profile import (
    CEILINGS,
    HIERARCHY,
    MEASURED,
    NAMES,
    REQUIRED_CEILINGS,
    DeviceProfile,
    all_profiles,
    load_profile,
    match_profile,
    parameters_for,
)
from perfport.measure.ceilings.catalogue import KINDS
from perfport.measure.roofline import NARROW_CEILINGS
from perfport.model.errors import UsageError

ARCHIVAL = ["gtx1080", "gtx680", "hd5870", "hd7970", "jetson_tx2", "k40m", "titan_xp"]
SHIPPED = sorted([*ARCHIVAL, "epyc", "generic_cpu", "h100", "h200", "xeon"])
WITH_NUMBERS = [*ARCHIVAL, "h100", "h200"]

# What the architectures fix, stated here a second time so that the files are checked against something:
# FP32 lanes and bytes of local memory per compute unit and clock, DRAM transfers per memory clock.
FP32_LANES = {"TeraScale 2": 80, "GCN 1.0": 64, "Kepler": 192, "Pascal": 128, "Hopper": 128}
LOCAL_BYTES = {"TeraScale 2": 128, "GCN 1.0": 128, "Kepler": 256, "Pascal": 128, "Hopper": 128}
# Operations per compute unit and clock, a multiply-add counted as 2.
RATES = {
    "TeraScale 2": {"int32_mad": 32, "int24_mad": 128, "int32_logic": 80, "exp": 16, "rsqrt": 16},
    "GCN 1.0": {"int32_mad": 2 / (1 / 16 + 1 / 64), "int24_mad": 128, "int32_logic": 64, "exp": 16, "rsqrt": 16},
    "Kepler": {"int32_mad": 64, "int32_logic": 160, "exp": 32, "rsqrt": 32},
    "Pascal": {"int32_mad": 2 * 128 / 3, "int16_mad": 256, "int32_logic": 128, "exp": 32, "rsqrt": 32},
    "Hopper": {"int32_mad": 128, "int32_logic": 128, "exp": 16, "rsqrt": 16},
}
# Figures of the sources' files, as they stand there: GB/s, GFLOP/s, Gop/s, us; those of other boards marked.
PUBLISHED = {
    "gtx1080": "dram_read 236.81 fp32_fma 9262.55 int32_mad 2621.57 "
    "h2d_pageable 1.77 d2h_pageable 12.85 enqueue_latency 4.35",
    "hd5870": "dram_read 127.53 fp32_fma 2139.41 int32_mad 541.23 "
    "h2d_pageable 3.61 d2h_pageable 3.36 enqueue_latency 117.88",
    "hd7970": "dram_read 247.07* dram_copy 211.122 dram_triad 219.383 fp32_fma 3817.28* int32_mad 811.31* "
    "h2d_pageable 9.13 d2h_pageable 5.61 enqueue_latency 35.82",
    "k40m": "dram_read 218.45 dram_copy 220.179 dram_triad 220.663 fp32_fma 3495.13 int32_mad 715.75 "
    "h2d_pageable 5.93 d2h_pageable 5.86 enqueue_latency 9.27",
    "titan_xp": "dram_read 435.969 dram_copy 433.586 dram_triad 436.491",
}
# Limits per compute capability: registers per thread, KiB of shared memory per SM, resident work-groups per SM,
# Ki registers per work-group.
CAPABILITY = {"3.0": (63, 48, 16, 64), "3.5": (255, 48, 16, 64), "6.1": (255, 96, 32, 64)}
CAPABILITY |= {"6.2": (255, 64, 32, 32), "9.0": (255, 228, 32, 64)}
TRANSFERS = dict.fromkeys(ARCHIVAL, 4) | {"gtx1080": 8, "titan_xp": 8, "jetson_tx2": 2, "h100": 4, "h200": 4}


def raw(name: str) -> dict[str, Any]:
    """Return a shipped file's content as plain YAML, without the models."""
    data = yaml.safe_load((files("perfport.device_profiles") / f"{name}.yaml").read_text(encoding="utf-8"))
    assert isinstance(data, dict)
    return data


def entries(data: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """Return every sourced entry of a file by its key path."""
    tables = ("ceilings", "hierarchy", "measured")
    found = {f"{table}.{key}": entry for table in tables for key, entry in data.get(table, {}).items()}
    for workload, parameters in data["tuning"].items():
        found |= {f"tuning.{workload}.{key}": entry for key, entry in parameters.items()}
    return found


def value(profile: DeviceProfile, key: str) -> float:
    """Return a known value of a profile."""
    quantity = profile.ceilings.get(key) or profile.hierarchy[key]
    assert quantity.value is not None, key
    return quantity.value


def highest_clock(profile: DeviceProfile) -> float:
    """Return the boost clock, or the base clock of a device without one, in Hz."""
    return profile.hierarchy["boost_clock"].value or value(profile, "base_clock")


def of_architecture(table: dict[str, int], profile: DeviceProfile) -> int:
    """Return the table's entry for the profile's architecture, ``Kepler (GK104)`` -> ``Kepler``."""
    return table[profile.architecture.partition(" (")[0]]


# --- what ships -------------------------------------------------------------------------------------------------


def test_all_profiles_are_the_shipped_ones_sorted() -> None:
    assert list(all_profiles()) == SHIPPED
    assert {name for name, profile in all_profiles().items() if profile.status == "archival"} == set(ARCHIVAL)


@pytest.mark.parametrize("name", SHIPPED)
def test_name_is_the_file_name_and_both_ways_of_loading_agree(name: str) -> None:
    profile = load_profile(name)
    assert profile.name == name
    assert load_profile(Path(str(files("perfport.device_profiles") / f"{name}.yaml"))) == profile


@pytest.mark.parametrize("name", SHIPPED)
def test_every_entry_has_a_source_that_resolves_and_nulls_say_why(name: str) -> None:
    data = raw(name)
    for path, entry in entries(data).items():
        assert entry["source"] in data["sources"], path
        if entry["value"] is None:
            assert entry["note"].strip(), path


@pytest.mark.parametrize("name", SHIPPED)
def test_every_source_is_used(name: str) -> None:
    data = raw(name)
    used = {entry["source"] for entry in entries(data).values()}
    used |= set(re.findall(r"\(source (\w+)\)|[Ss]ource (\w+)", str(data)))
    flat = {key for item in used for key in ([item] if isinstance(item, str) else item)}
    assert set(data["sources"]) <= flat


def test_a_profile_says_whether_it_is_of_a_cpu() -> None:
    """By which tables of modelled times leave it out: it states no ceilings, and had the times of a GPU."""
    assert {name for name in SHIPPED if load_profile(name).kind == "cpu"} == {"epyc", "generic_cpu", "xeon"}


@pytest.mark.parametrize("name", WITH_NUMBERS)
def test_device_files_cover_every_key(name: str) -> None:
    data = raw(name)
    assert set(data["hierarchy"]) == set(HIERARCHY)
    asked = {"host_bandwidth", "l1_bandwidth", "int32_mad", "int32_logic", "exp", "rsqrt", "launch_latency"}
    assert set(data["ceilings"]) >= {*REQUIRED_CEILINGS, *asked}


@pytest.mark.parametrize("name", SHIPPED)
def test_from_memory_is_marked_so(name: str) -> None:
    for key, citation in raw(name)["sources"].items():
        assert (key == "m") == ("from memory, unverified" in citation), key


# --- arithmetic -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", WITH_NUMBERS)
def test_fp32_peak_is_lanes_times_clock(name: str) -> None:
    profile = load_profile(name)
    lanes = of_architecture(FP32_LANES, profile)
    assert value(profile, "fp32_lanes") == lanes
    per_clock = 2 * lanes * value(profile, "compute_units")
    assert value(profile, "fp32_base") == pytest.approx(per_clock * value(profile, "base_clock"), rel=1e-3)
    boost = profile.ceilings["fp32_boost"].value
    assert (boost is None) == (profile.hierarchy["boost_clock"].value is None)
    if boost is not None:
        assert boost == pytest.approx(per_clock * value(profile, "boost_clock"), rel=1e-3)
        assert boost > value(profile, "fp32_base")


@pytest.mark.parametrize("name", WITH_NUMBERS)
def test_dram_bandwidth_is_bus_times_clock(name: str) -> None:
    profile = load_profile(name)
    rate = value(profile, "memory_bus_width") / 8 * value(profile, "memory_clock") * TRANSFERS[name]
    # The vendor rounds down, by 2 % for the H200; the files' notes say so.
    assert value(profile, "dram_bandwidth") == pytest.approx(rate, rel={"h100": 4e-3, "h200": 0.02}.get(name, 1e-3))


@pytest.mark.parametrize("name", WITH_NUMBERS)
def test_local_bandwidth_is_bytes_per_clock_at_the_highest_clock(name: str) -> None:
    profile = load_profile(name)
    per_clock = of_architecture(LOCAL_BYTES, profile) * value(profile, "compute_units")
    assert value(profile, "local_bandwidth") == pytest.approx(per_clock * highest_clock(profile), rel=1e-6)


@pytest.mark.parametrize("name", WITH_NUMBERS)
def test_arithmetic_rates_are_those_of_the_architecture_at_the_highest_clock(name: str) -> None:
    """As for FP32, so that a bound under them holds for a device that boosts."""
    profile = load_profile(name)
    rates = RATES[profile.architecture.partition(" (")[0]]
    stated = {key: value(profile, key) for key in (*NARROW_CEILINGS, "int32_mad", "int32_logic", "exp", "rsqrt")
              if key in profile.ceilings}  # fmt: skip
    clocks = value(profile, "compute_units") * highest_clock(profile)
    assert stated == {key: pytest.approx(rate * clocks, rel=2e-6) for key, rate in rates.items()}


@pytest.mark.parametrize("name", WITH_NUMBERS)
def test_a_note_that_shows_the_arithmetic_shows_it_right(name: str) -> None:
    shown = 0
    for path, entry in entries(raw(name)).items():
        if not path.startswith("ceilings") or entry["value"] is None:
            continue
        if product := re.search(r"\d+ (?:SM|CU) x [^;:,]*MHz", entry.get("note", "")):
            factors = re.findall(r"(^|x |/ )(\d+(?:\.\d+)?)", product[0])
            result = 1e6
            for sign, factor in factors:
                result = result / float(factor) if sign == "/ " else result * float(factor)
            assert entry["value"] == pytest.approx(result, rel=1e-4), path
            shown += 1
    assert shown >= 5


@pytest.mark.parametrize("name", [n for n in WITH_NUMBERS if n != "jetson_tx2"])
def test_host_bandwidth_follows_from_the_pcie_generation(name: str) -> None:
    profile = load_profile(name)
    transfers, coding = {2.0: (5e9, 8 / 10), 3.0: (8e9, 128 / 130), 5.0: (32e9, 128 / 130)}[
        value(profile, "pcie_generation")
    ]
    lanes = value(profile, "pcie_lanes")
    assert value(profile, "host_bandwidth") == pytest.approx(transfers * coding * lanes / 8, rel=1e-4)


def test_hd5870_bandwidths_of_the_guide_are_one_clock() -> None:
    profile = load_profile("hd5870")
    clock, cores = value(profile, "base_clock"), 320
    assert value(profile, "l2_bandwidth") == pytest.approx(8 * 64 * clock)
    assert value(profile, "l1_bandwidth") == pytest.approx(20 * 64 * clock)
    assert value(profile, "constant_bandwidth") == pytest.approx(16 * cores * clock)
    assert value(profile, "register_bandwidth") == pytest.approx(48 * cores * clock)


def test_hd5870_gives_the_published_bound_of_the_rbf_rows() -> None:
    profile = load_profile("hd5870")
    assert profile.bandwidth is not None
    assert profile.bandwidth * 6 / 4 == pytest.approx(230.4e9)
    assert any("157.6" in note and "153.6" in note for note in profile.notes)


@pytest.mark.parametrize("name", ARCHIVAL)
def test_sizes_are_bytes_not_kilobytes(name: str) -> None:
    profile = load_profile(name)
    for key in ("l1", "local_memory", "l2", "constant_cache"):
        assert 8 * 1024 <= value(profile, key) <= 3 * 1024**2 and value(profile, key) % 1024 == 0, key
    assert value(profile, "memory") % 2**30 == 0


@pytest.mark.parametrize("name", [n for n in WITH_NUMBERS if not n.startswith("hd")])
def test_limits_follow_from_the_compute_capability(name: str) -> None:
    profile = load_profile(name)
    assert profile.vendor == "NVIDIA" and profile.compute_capability is not None
    per_thread, shared, groups, per_group = CAPABILITY[profile.compute_capability]
    assert value(profile, "max_registers_per_thread") == per_thread
    assert value(profile, "local_memory") == shared * 1024
    assert value(profile, "resident_groups_per_cu") == groups
    assert value(profile, "max_registers_per_work_group") == per_group * 1024
    assert value(profile, "resident_threads_per_cu") * value(profile, "hardware_thread") == 2048
    assert value(profile, "registers") == 2048 * 32
    assert value(profile, "hardware_thread") == value(profile, "memory_transaction") == 32
    assert value(profile, "max_work_group") == 32 * 32
    assert value(profile, "constant_cache") == 8 * 1024


@pytest.mark.parametrize("name", ["hd5870", "hd7970"])
def test_amd_work_groups_and_registers(name: str) -> None:
    profile = load_profile(name)
    assert profile.compute_capability is None
    assert value(profile, "hardware_thread") == 64
    assert value(profile, "max_work_group") == 4 * 64
    assert value(profile, "registers") * 4 == 256 * 1024  # bytes
    assert value(profile, "resident_threads_per_cu") == {"hd5870": 2 * 248 / 20, "hd7970": 4 * 10}[name]


def test_convenience_ceilings() -> None:
    assert load_profile("gtx1080").fp32 == 8873e9  # boost where there is one
    assert load_profile("hd7970").fp32 == 3789e9  # else base
    assert (load_profile("generic_cpu").fp32, load_profile("generic_cpu").bandwidth) == (None, None)


# --- names, and what others measured -----------------------------------------------------------------------------


def test_names_and_units_are_those_of_the_suites_ceilings() -> None:
    for name, unit in MEASURED.items():
        assert name == "enqueue_latency" or KINDS[name].unit == unit, name
    for key, unit in CEILINGS.items():
        for name in NAMES.get(key, (key,)):
            assert name in (*NARROW_CEILINGS, "fetch") or KINDS[name].unit == unit, name
    assert set(NAMES) <= set(CEILINGS)


def test_nominal_ceilings_have_the_suites_names() -> None:
    profile = load_profile("hd7970")
    assert profile.nominal == {
        **dict.fromkeys(("dram_read", "dram_copy", "dram_triad"), 264e9), "fp32_fma": 3789e9, "local_read": 3788.8e9,
        "l1_read": 1894.4e9, "l2_read": 710e9, "int32_mad": 757.76e9, "int24_mad": 3788.8e9, "int32_logic": 1894.4e9,
        "exp": 473.6e9, "rsqrt": 473.6e9, **dict.fromkeys(("h2d_pinned", "d2h_pinned"), 15.754e9),
    }  # fmt: skip
    assert load_profile("generic_cpu").nominal == {}


def test_the_guide_names_every_key() -> None:
    guide = (Path(__file__).parents[2] / "docs" / "add-a-device.md").read_text(encoding="utf-8")
    assert [key for key in {*CEILINGS, *HIERARCHY, *MEASURED} if f"`{key}`" not in guide] == []


@pytest.mark.parametrize("name", SHIPPED)
def test_published_ceilings_are_the_sources_figures_unscaled(name: str) -> None:
    profile, words = load_profile(name), PUBLISHED.get(name, "").split()
    figures = dict(zip(words[::2], words[1::2], strict=True))
    assert set(profile.measured) == set(figures)
    for key, figure in figures.items():
        entry = profile.measured[key]
        scale = 1e-6 if entry.unit == "s" else 1e9
        assert entry.value == pytest.approx(float(figure.rstrip("*")) * scale), key
        assert (entry.differs is not None) == figure.endswith("*") == (key not in profile.published), key
        assert re.search(
            r"^(clpeak|BabelStream) .* results/\S+ as of commit [0-9a-f]{12} of", profile.sources[entry.source]
        )


@pytest.mark.parametrize("name", list(PUBLISHED))
def test_what_was_measured_is_at_most_what_is_nominal(name: str) -> None:
    profile = load_profile(name)
    both = profile.nominal.keys() & profile.published.keys()
    assert both
    for key in both:  # GTX 1080: the note says why
        above = 1.05 if (name, key) == ("gtx1080", "fp32_fma") else 1.0
        assert 0.5 * profile.nominal[key] < profile.published[key] <= above * profile.nominal[key], key


# --- tuning -----------------------------------------------------------------------------------------------------


def test_tuning_parameters_are_those_of_the_literature() -> None:
    amd, nvidia = load_profile("hd7970"), load_profile("gtx680")
    names = ("work_group", "groups_per_cu", "batch", "cooperative_windows", "single_item_stages")
    assert parameters_for(amd, "face_detection") == dict(zip(names, (64, 8, 64, 4, 3), strict=True))
    assert parameters_for(nvidia, "face_detection") == dict(zip(names, (32, 12, 32, 2, 3), strict=True))
    for profile in (amd, nvidia):  # the source's work-group is one hardware thread, and the groups fit
        assert parameters_for(profile, "face_detection")["work_group"] == value(profile, "hardware_thread")
        assert int(parameters_for(profile, "face_detection")["groups_per_cu"]) <= value(
            profile, "resident_groups_per_cu"
        )
    assert parameters_for(load_profile("hd5870"), "svm_rbf") == {"pitch_multiple": 32}
    assert parameters_for(amd, "svm_rbf") == {}


# --- matching ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("device", "kind", "expected"),
    [
        ("NVIDIA H200", "gpu", "h200"),
        ("NVIDIA H100 80GB HBM3", "gpu", "h100"),
        ("Tesla K40m", "gpu", "k40m"),
        ("NVIDIA GeForce GTX 680", "gpu", "gtx680"),
        ("GeForce GTX 1080", "gpu", "gtx1080"),
        ("NVIDIA TITAN Xp", "gpu", "titan_xp"),
        ("NVIDIA Tegra X2", "gpu", "jetson_tx2"),
        ("AMD Radeon HD 7970", "gpu", "hd7970"),
        ("ATI Radeon HD 5870", "gpu", "hd5870"),
        ("AMD Radeon (TM) HD 5870", "gpu", "hd5870"),
        ("Intel(R) Xeon(R) Processor", "cpu", "xeon"),
        ("pthread-Intel(R) Xeon(R) Processor", "cpu", "xeon"),
        ("pthread-sapphirerapids-Intel(R) Xeon(R) Processor", "cpu", "xeon"),
        ("Intel(R) Xeon(R) Platinum 8480C", "cpu", "generic_cpu"),
        ("Intel(R) Xeon(R) Processor @ 2.20GHz", "cpu", "generic_cpu"),
        ("pthread-haswell-Intel(R) Xeon(R) Processor", "cpu", "generic_cpu"),
        ("Intel Xeon Processor (Skylake, IBRS)", "cpu", "generic_cpu"),
        ("cpu-haswell-AMD EPYC 9B14", "cpu", "generic_cpu"),
        ("AMD EPYC", "cpu", "epyc"),
        ("pthread-skylake-avx512-AMD EPYC", "cpu", "epyc"),
        ("pthread-haswell-AMD EPYC", "cpu", "generic_cpu"),
        ("AMD EPYC 9B14", "cpu", "generic_cpu"),
        # Relatives with other clocks or another chip, and strangers, have no profile.
        ("NVIDIA H100 PCIe", "gpu", None),
        ("NVIDIA H100 NVL", "gpu", None),
        ("NVIDIA H100 80GB HBM3 MIG 1g.10gb", "gpu", None),
        ("NVIDIA H200 NVL", "gpu", None),
        ("NVIDIA H200 MIG 1g.18gb", "gpu", None),
        ("NVIDIA GH200 480GB", "gpu", None),
        ("Tesla K40c", "gpu", None),
        ("GeForce GTX 680M", "gpu", None),
        ("GeForce GTX 1080 Ti", "gpu", None),
        ("NVIDIA TITAN X (Pascal)", "gpu", None),
        ("Mobility Radeon HD 5870", "gpu", None),
        ("Radeon HD 7970 GHz Edition", "gpu", None),
        ("NVIDIA A100-SXM4-80GB", "gpu", None),
    ],
)
def test_matching(device: str, kind: str, expected: str | None) -> None:
    profile = match_profile(device, kind)
    assert (profile.name if profile else None) == expected


# --- what is refused --------------------------------------------------------------------------------------------


def sample() -> dict[str, Any]:
    """Return the content of a small valid profile."""
    known = {"value": 1.0, "source": "d"}
    return {
        "name": "example",
        "title": "Example",
        "kind": "gpu",
        "status": "archival",
        "vendor": "V",
        "architecture": "A",
        "sources": {"d": "a datasheet"},
        "match": ["^Example$"],
        "ceilings": {key: {**known, "unit": CEILINGS[key]} for key in REQUIRED_CEILINGS},
        "hierarchy": {"compute_units": {**known, "unit": "count"}},
        "measured": {"dram_copy": {**known, "unit": "B/s", "board": "Example, 1 GHz"}},
        "tuning": {"svm_rbf": {"pitch_multiple": {"value": 32, "source": "d"}}},
    }


def write(folder: Path, data: Any) -> Path:
    """Write ``example.yaml`` and return its path."""
    path = folder / "example.yaml"
    path.write_text(data if isinstance(data, str) else yaml.safe_dump(data), encoding="utf-8")
    return path


def test_the_sample_is_valid(tmp_path: Path) -> None:
    profile = load_profile(str(write(tmp_path, sample())))
    assert (profile.name, profile.bandwidth, profile.compute_capability) == ("example", 1.0, None)


REMOVE = object()


@pytest.mark.parametrize(
    ("path", "new", "expected"),
    [
        ("titel", "T", ["titel: unknown key", "did you mean 'title'?"]),
        ("ceilings.dram_bandwith", {"value": 1.0, "unit": "B/s", "source": "d"}, ["did you mean 'dram_bandwidth'?"]),
        ("hierarchy.compute_unit", {"value": 1, "unit": "count", "source": "d"}, ["did you mean 'compute_units'?"]),
        ("ceilings.fp32_base.sauce", "d", ["ceilings.fp32_base.sauce: unknown key", "did you mean 'source'?"]),
        ("tuning.svm_rbf.pitch_multiple.vale", 1, ["tuning.svm_rbf.pitch_multiple.vale", "did you mean 'value'?"]),
        ("ceilings.fp32_base.value", "fast", ["ceilings.fp32_base.value", "valid number", "'fast'"]),
        ("ceilings.fp32_base.value", "1e9", ["'1e9' (YAML reads 1e9 as text: write 1.0e+9)"]),
        ("ceilings.fp32_base.value", True, ["ceilings.fp32_base.value", "valid number", "True"]),
        ("ceilings.fp32_base.value", -1, ["ceilings.fp32_base.value", "greater than or equal to 0", "-1"]),
        ("ceilings.fp32_base.value", float("nan"), ["ceilings.fp32_base.value", "finite number"]),
        ("ceilings.fp32_base.value", None, ["ceilings.fp32_base", "null needs a note"]),
        ("ceilings.fp32_base.unit", "GFLOP/s", ["ceilings.fp32_base.unit", "expected 'FLOP/s', got 'GFLOP/s'"]),
        ("ceilings.fp32_base.source", "dd", ["ceilings.fp32_base.source: 'dd'", "did you mean 'd'?"]),
        ("hierarchy.compute_units.source", "q", ["hierarchy.compute_units.source: 'q' is not a key of sources"]),
        ("tuning.svm_rbf.pitch_multiple.source", "q", ["tuning.svm_rbf.pitch_multiple.source: 'q'"]),
        ("tuning.svm_rbf.pitch_multiple.value", True, ["tuning.svm_rbf.pitch_multiple.value", "a C identifier"]),
        ("tuning.svm_rbf.pitch_multiple.value", "a b", ["tuning.svm_rbf.pitch_multiple.value", "a C identifier"]),
        ("tuning.svm_rbf.Pitch", {"value": 1, "source": "d"}, ["tuning.svm_rbf.Pitch"]),
        ("ceilings.int32_madd", {"value": 1.0, "unit": "op/s", "source": "d"}, ["did you mean 'int32_mad'?"]),
        ("ceilings.launch_latency", {"value": 1.0, "unit": "us", "source": "d"}, ["expected 's', got 'us'"]),
        (
            "measured.dram_cpy",
            {"value": 1.0, "unit": "B/s", "source": "d", "board": "b"},
            ["did you mean 'dram_copy'?"],
        ),
        ("measured.dram_copy.unit", "GB/s", ["measured.dram_copy.unit", "expected 'B/s', got 'GB/s'"]),
        ("measured.dram_copy.source", "q", ["measured.dram_copy.source: 'q' is not a key of sources"]),
        ("measured.dram_copy.source", REMOVE, ["measured.dram_copy.source: required key is missing"]),
        ("measured.dram_copy.board", REMOVE, ["measured.dram_copy.board: required key is missing"]),
        ("measured.dram_copy.board", "", ["measured.dram_copy.board"]),
        ("measured.dram_copy.value", None, ["measured.dram_copy.value", "valid number", "None"]),
        ("measured.dram_copy.value", 0, ["measured.dram_copy.value", "greater than 0"]),
        ("measured.dram_copy.clock", 1, ["measured.dram_copy.clock: unknown key"]),
        ("ceilings.l2_bandwidth", REMOVE, ["ceilings.l2_bandwidth: required key is missing"]),
        ("ceilings.fp32_base.unit", REMOVE, ["ceilings.fp32_base.unit: required key is missing"]),
        ("vendor", REMOVE, ["vendor: required key is missing"]),
        ("kind", REMOVE, ["kind: required key is missing"]),
        ("kind", "tpu", ["kind", "'cpu' or 'gpu'", "'tpu'"]),
        ("status", "alive", ["status", "'archival' or 'live'", "'alive'"]),
        ("compute_capability", 9.0, ["compute_capability", "valid string", "9.0"]),
        ("compute_capability", "sm_90", ["compute_capability", "'sm_90'"]),
        ("compute_capability", "9", ["compute_capability", "'9'"]),
        ("match", ["("], ["match.0: expected a regular expression, got '('"]),
    ],
)
def test_a_bad_entry_is_named(tmp_path: Path, path: str, new: Any, expected: list[str]) -> None:
    data = copy.deepcopy(sample())
    *parents, last = path.split(".")
    target = data
    for part in parents:
        target = target[part]
    if new is REMOVE:
        del target[last]
    else:
        target[last] = new
    with pytest.raises(UsageError) as caught:
        load_profile(write(tmp_path, data))
    for text in ["example.yaml: ", *expected]:
        assert text in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ("", "expected a mapping with the keys name, title"),
        ("- 1\n", "expected a mapping"),
        ("name: [", "not valid YAML"),
        ("name: !!python/object/apply:os.getcwd []", "not valid YAML"),
    ],
)
def test_a_file_that_is_no_profile(tmp_path: Path, content: str, expected: str) -> None:
    with pytest.raises(UsageError, match=expected) as caught:
        load_profile(write(tmp_path, content))
    assert "example.yaml" in str(caught.value)


def test_unreadable_files(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"absent\.yaml: cannot be read"):
        load_profile(tmp_path / "absent.yaml")
    with pytest.raises(UsageError, match="cannot be read"):
        load_profile(tmp_path)
    (tmp_path / "binary.yaml").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(UsageError, match=r"binary\.yaml: not UTF-8"):
        load_profile(tmp_path / "binary.yaml")


def test_unknown_name_lists_the_known_ones_and_the_nearest() -> None:
    with pytest.raises(UsageError) as caught:
        load_profile("hd7790")
    assert "unknown device profile 'hd7790' (did you mean 'hd7970'?)" in str(caught.value)
    assert all(name in str(caught.value) for name in SHIPPED)


def test_shipped_profiles_cannot_be_changed_by_a_caller() -> None:
    profiles = all_profiles()
    profiles.clear()
    assert list(all_profiles()) == SHIPPED
    with pytest.raises(ValueError, match="frozen"):
        all_profiles()["h200"].title = "other"
