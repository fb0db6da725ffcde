"""Predictions as rows of a data frame: every case on every device, measured, published or modelled."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from ...machine.device_profile import all_profiles
from ...model.names import NATIVE
from ...model.published import Figure, figures
from ...model.record import CONFIDENCE as OF_MEASUREMENT
from ...store.columns import Column
from .devices import Device
from .predictor import Outcome, Prediction, Predictor, targets
from .widths import CONFIDENCE

COLUMNS = {
    "workload": Column("category", "", "workload"),
    "problem": Column("category", "", "problem of the workload"),
    "preset": Column("category", "", "preset of the problem, missing where none was named"),
    "parameters": Column("category", "", "all parameters of the problem, as JSON with sorted names"),
    "precision": Column("category", "", "precision class"),
    "variant": Column("category", "", "variant; peers are not modelled"),
    "role": Column("category", "", "as in `cases`"),
    "rung": Column("int64", "", "order within the role"),
    "tunables": Column("category", "", "all tunables of the variant, as JSON with sorted names"),
    "profile": Column("category", "", "device whose tuning parameters were compiled in; `native` for none"),
    "cache": Column("category", "", "`cold` or `warm`"),
    "device": Column("category", "", "a profile, or platform and chip of a live device"),
    "title": Column("category", "", "what the device is called"),
    "outcome": Column("category", "", "what there is of it", tuple(Outcome)),
    "provenance": Column("category", "", "of `seconds`: `measured` or `modelled`; missing without a number"),
    "seconds": Column("float64", "s", "time of one execution; modelled ones are in no claim, metric or ratio"),
    "seconds_low": Column("float64", "s", "lower end of its interval"),
    "seconds_high": Column("float64", "s", "upper end"),
    "confidence": Column("float64", "1", "of the interval: 0.95 measured, 0.9 modelled"),
    "value": Column("float64", "column `unit`", "metric of the problem at that time"),
    "value_low": Column("float64", "column `unit`", "lower end of its interval"),
    "value_high": Column("float64", "column `unit`", "upper end"),
    "unit": Column("category", "", "unit of the metric"),
    "direction": Column("category", "", "whether `higher` or `lower` is better"),
    "published": Column("float64", "column `unit`", "what a publication states of it, at a size of its own"),
    "published_source": Column("category", "", "publication and section"),
    "source": Column("category", "", "live device that the time was carried over from"),
    "relation": Column("category", "", "how alike the two devices are"),
    "binding": Column("category", "", "the longest term on the device: a ceiling, or `dram`"),
    "explained": Column("float64", "1", "share of the measured time that launches and the longest term explain"),
    "notes": Column("string", "", "origin of the binding ceiling; occupancy by the registers of the source"),
    "reason": Column("string", "", "why there is no ground, or why it cannot run"),
}  # fmt: skip


def rows(predictor: Predictor, devices: Iterable[Device] | None = None) -> Iterator[dict[str, Any]]:
    """Yield a row for each case on each device, by default on all that tables have a column for."""
    for device in targets(predictor) if devices is None else devices:
        for prediction in predictor.predictions(device):
            yield row(prediction)


def row(prediction: Prediction) -> dict[str, Any]:
    """Return a prediction in the columns of `COLUMNS`."""
    case, estimate = prediction.case, prediction.estimate
    i, metric = case.record.identity, case.record.metric
    measured, stated = prediction.outcome is Outcome.MEASURED, figure_of(prediction)
    told: dict[str, Any] = {
        "workload": i.workload, "problem": i.problem, "preset": i.preset,
        "parameters": prediction.key.subject.parameters,
        "precision": i.precision, "variant": i.variant, "role": i.role, "rung": i.rung,
        "tunables": prediction.key.tunables, "profile": i.profile or NATIVE, "cache": prediction.key.cache,
        "device": prediction.device.name, "title": prediction.device.title, "outcome": prediction.outcome.value,
        "reason": prediction.reason or None, "unit": metric.unit if metric else None,
        "direction": metric.direction if metric else None, "published": stated.value if stated else None,
        "published_source": stated.source if stated else None,
    }  # fmt: skip
    if estimate:
        told |= {"source": estimate.source.device.name, "relation": estimate.relation.value}
        told |= {"binding": estimate.binding, "explained": estimate.share, "notes": "; ".join(estimate.notes)}
    if prediction.seconds and prediction.outcome in (Outcome.MEASURED, Outcome.MODELLED):
        told |= {"provenance": "measured" if measured else "modelled"}
        told |= {"confidence": OF_MEASUREMENT if measured else CONFIDENCE}
        told |= {"seconds": prediction.seconds.value}
        told |= {"seconds_low": prediction.seconds.low, "seconds_high": prediction.seconds.high}
        if value := prediction.metric:
            told |= {"value": value.value, "value_low": value.low, "value_high": value.high}
    return told


def figure_of(prediction: Prediction) -> Figure | None:
    """Return what a publication states of a variant on an archival device in the problem's metric, if it does."""
    i, metric = prediction.case.record.identity, prediction.case.record.metric
    if metric is None or prediction.device.name not in all_profiles() or prediction.key.profile:
        return None
    stated = (i.problem, i.variant, prediction.device.name, metric.unit)
    return next((f for f in figures(i.workload) if (f.problem, f.variant, f.device, f.unit) == stated), None)
