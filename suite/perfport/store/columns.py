"""Columns of the data frames: of what type, in which unit, and what they mean (docs/dataframes.md)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import pandas as pd

from ..model.names import ROLES
from ..model.record import Status

#: Columns that name one problem, setting, inputs and place: the rows that are ranked together.
LADDER = ["workload", "problem", "parameters", "precision", "inputs", "device", "devices"]
#: Columns that name a case.
CASE = ["run", "key"]


class Column(NamedTuple):
    """A column of a frame.

    Attributes
    ----------
    dtype : str
        As pandas calls it; ``time`` is ``datetime64`` in UTC.
    unit : str
        SI unit, ``1`` for a share, a column that holds the unit; empty for names.
    meaning : str
    values : tuple of str
        Of a category whose values have an order: those that this version writes. Others follow them, by name.
    """

    dtype: str
    unit: str
    meaning: str
    values: tuple[str, ...] = ()


def _bound(name: str, what: str) -> dict[str, Column]:
    return {
        f"{name}_bound": Column("float64", "s", f"least time that {what}"),
        f"{name}_binding": Column("category", "", "what sets that bound: a ceiling, or `dram`"),
        f"{name}_share": Column("float64", "1", "share of that bound reached; 1 is at the bound"),
        f"{name}_share_low": Column("float64", "1", "lower end of its 95 % interval"),
        f"{name}_share_high": Column("float64", "1", "upper end"),
    }


SCHEMA: dict[str, dict[str, Column]] = {
    "cases": {
        "run": Column("category", "", "name of the run's folder; with `key` it names the case"),
        "key": Column("string", "", "key of the record, as `perfport show` takes it"),
        "workload": Column("category", "", "workload"),
        "problem": Column("category", "", "problem of the workload"),
        "preset": Column("category", "", "preset of the problem, missing where none was named"),
        "parameters": Column("category", "", "all parameters of the problem, as JSON with sorted names"),
        "precision": Column("category", "", "precision class; classes are never ranked together"),
        "variant": Column("category", "", "variant"),
        "role": Column("category", "", "`rung`, `control`, `beyond` or `peer`, in this order", ROLES),
        "rung": Column("int64", "", "order within the role"),
        "tunables": Column("category", "", "all tunables of the variant, as JSON with sorted names"),
        "profile": Column("category", "", "device whose tuning parameters were compiled in; `native` for none"),
        "device": Column("category", "", "device, as reports name it where it is alone"),
        "devices": Column("int64", "1", "such devices that took part; bounds are of one, so cases of more have none"),
        "chip": Column("category", "", "chip of the device"),
        "kind": Column("category", "", "`cpu` or `gpu`"),
        "host": Column("category", "", "CPU of the host"),
        "backend": Column("category", "", "`opencl` or `cuda`"),
        "status": Column("category", "", "how the case ended", tuple(Status)),
        "reason": Column("string", "", "why it has no result, or a mark"),
        "later": Column("category", "", "how it ended in a later run, where it failed there", tuple(Status)),
        "provenance": Column("category", "", "`measured` in every row"),
        "ranked": Column("bool", "", "may be called best: measured, right, not contended"),
        "best": Column("bool", "", "fastest of its problem, setting, precision and device; peers do not count"),
        "clock": Column("category", "", "clock of `seconds`: `span` (device events) or `wall`"),
        "cache": Column("category", "", "`cold` or `warm`"),
        "samples": Column("Int64", "1", "number of samples"),
        "effective_samples": Column("float64", "1", "independent samples that they amount to, where estimated"),
        "launches": Column("Int64", "1", "device activities of one execution"),
        "seconds": Column("float64", "s", "median time of one execution"),
        "seconds_low": Column("float64", "s", "lower end of its interval"),
        "seconds_high": Column("float64", "s", "upper end"),
        "confidence": Column("float64", "1", "of the interval: 0.95, less below 6 samples"),
        "target_met": Column("boolean", "", "whether the noise target of the measurement was met"),
        "metric": Column("category", "", "metric of the problem"),
        "value": Column("float64", "column `unit`", "value of the metric"),
        "value_low": Column("float64", "column `unit`", "lower end of its 95 % interval"),
        "value_high": Column("float64", "column `unit`", "upper end"),
        "unit": Column("category", "", "unit of the metric"),
        "direction": Column("category", "", "whether `higher` or `lower` is better"),
        **_bound("problem", "the measured ceilings allow for the useful work"),
        **_bound("variant", "the measured ceilings allow for the traffic of the variant"),
        **_bound("datasheet", "the ceilings of the data sheet allow for the useful work"),
        "useful_flops": Column("float64", "FLOP", "useful operations of one execution"),
        "useful_integer_ops": Column("float64", "operations", "useful integer operations"),
        "useful_read_bytes": Column("float64", "B", "compulsory bytes read"),
        "useful_write_bytes": Column("float64", "B", "compulsory bytes written"),
        "useful_host_bytes": Column("float64", "B", "compulsory bytes from host memory"),
        "joules": Column("float64", "J", "energy of one execution, where it was measured"),
        "joules_low": Column("float64", "J", "lower end of its 95 % interval"),
        "joules_high": Column("float64", "J", "upper end"),
        "watts": Column("float64", "W", "mean power while it was measured"),
        "idle_watts": Column("float64", "W", "power at rest before, which is part of `joules`"),
        "energy_domain": Column("category", "", "what consumed it: the whole GPU, or all processor packages"),
        "energy_absent": Column("string", "", "why there is no energy, where it was asked for"),
        "compile_seconds": Column("float64", "s", "compiling and loading the kernels"),
        "upload_seconds": Column("float64", "s", "making or uploading the inputs"),
        "layout_seconds": Column("float64", "s", "re-laying out inputs for this variant"),
        "device_bytes": Column("Int64", "B", "device memory of the variant"),
        "verified": Column("boolean", "", "whether all outputs passed; missing where nothing was verified"),
        "max_abs": Column("float64", "of the output", "largest absolute error of any output"),
        "relative_l2": Column("float64", "1", "largest relative L2 error of any output"),
        "checked": Column("Int64", "1", "elements compared with the reference"),
        "total": Column("Int64", "1", "elements of the outputs"),
        "time": Column("time", "UTC", "end of sampling; without a result, when the case was begun or given up"),
        "inputs": Column("category", "", "seed of each timed instance of the inputs, as JSON by name"),
        "commit": Column("category", "", "commit of the suite, missing for an installed wheel"),
        "dirty": Column("boolean", "", "whether there were uncommitted changes"),
        "driver": Column("category", "", "driver of the device"),
        "source": Column("category", "", "section of the publication, or `beyond the source`"),
        "title": Column("string", "", "one line on the variant"),
    },
    "samples": {
        "run": Column("category", "", "run of the case"),
        "key": Column("string", "", "key of the case"),
        "clock": Column("category", "", "`span`, `busy` or `wall`"),
        "sample": Column("int64", "", "number of the sample on this clock, from 0"),
        "round": Column("Int64", "", "interleaving round; samples of one round were taken side by side"),
        "worker": Column("Int64", "", "number of the fresh worker that took it"),
        "seconds": Column("float64", "s", "time of one execution"),
    },
    "instances": {
        "run": Column("category", "", "run of the case"),
        "key": Column("string", "", "key of the case"),
        "instance": Column("category", "", "name of the instance"),
        "seed": Column("int64", "", "its seed"),
        "sample": Column("int64", "", "number of the sample, as on the clock that ranks the case"),
        "round": Column("Int64", "", "interleaving round"),
        "worker": Column("Int64", "", "number of the fresh worker that took it"),
        "seconds": Column("float64", "s", "time of one execution"),
    },
    "ceilings": {
        "run": Column("category", "", "run"),
        "device": Column("category", "", "device as in `cases`"),
        "chip": Column("category", "", "chip of the device"),
        "ceiling": Column("category", "", "name of the ceiling (docs/records.md)"),
        "taken": Column(
            "category", "",
            "`sweep`: measured for the run; `before`, `after`: probed around a group of cases; `again`: because a case "
            "was below its bound",
            ("sweep", "before", "again", "after"),
        ),
        "value": Column("float64", "column `unit`", "median of the best shape"),
        "low": Column("float64", "column `unit`", "lower end of its 95 % interval"),
        "high": Column("float64", "column `unit`", "upper end"),
        "unit": Column("category", "", "`B/s`, `FLOP/s`, `op/s` or `s`"),
        "direction": Column("category", "", "whether `higher` or `lower` is better"),
        "time": Column("time", "UTC", "when it was measured; of a sweep, when that ended"),
        "theory": Column("float64", "column `unit`", "what data sheet or clock allow, where known; of sweeps"),
        "spread": Column("float64", "1", "worst shape over best; of sweeps"),
        "samples": Column("Int64", "1", "samples of the best shape; of sweeps"),
        "shape": Column("category", "", "the best shape, as JSON with sorted names; of sweeps"),
    },
}  # fmt: skip


def frame_of(columns: Mapping[str, Column], rows: Sequence[Any]) -> pd.DataFrame:
    """Return rows, mappings or in the order of the columns, as a frame of such columns."""
    raw = pd.DataFrame(rows, columns=list(columns), dtype=object)
    frame = pd.DataFrame({name: _typed(raw[name], column) for name, column in columns.items()})
    frame.attrs["units"] = {name: column.unit for name, column in columns.items() if column.unit}
    return frame


def _typed(values: pd.Series, column: Column) -> pd.Series:
    if column.dtype == "time":
        return pd.to_datetime(values, utc=True, format="ISO8601")
    if column.values:
        present = set(values.dropna())
        kept = [value for value in column.values if value in present] + sorted(present - {*column.values})
        return values.astype(pd.CategoricalDtype(kept, ordered=True))
    return values.astype(column.dtype)  # type: ignore[call-overload]
