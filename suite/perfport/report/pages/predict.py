"""Modelled times: a device's column, what is assumed of it, and how far the model can be trusted."""

from __future__ import annotations

from collections.abc import Container, Iterable, Sequence
from itertools import groupby
from urllib.parse import quote

from ...judge.predict import (
    COLUMNS,
    Device,
    Outcome,
    Prediction,
    Predictor,
    coverage,
    live_pairs,
    published,
)
from ...judge.predict.table import row
from ...model.errors import UsageError
from ...model.untrusted import slug
from ...store.case import Subject
from ...store.collection import Filter
from ...store.columns import frame_of
from ..parts.device_roofs import roofs_plot
from ..parts.markdown import code, join, text
from ..parts.modelled import telling
from ..parts.plots import Plot, image
from ..parts.predicted import (
    READING,
    by_setting,
    cases_table,
    ceilings_table,
    coverage_table,
    device_table,
    heading,
    matrix,
    pair_table,
    published_table,
)
from ..parts.view import View, plain_rows

TRUST = "How far this model can be trusted"
PAGE = "predictions.md"
ALONE = (
    "No two live devices of these results have a result of the same case that may be ranked (contended ones predict "
    "nothing): intervals have the widths of public data."
)


def view(predictor: Predictor, device: Device, chosen: Filter) -> View:
    """Return every case that is meant on one device.

    Raises
    ------
    UsageError
        If none is meant.
    """
    taken = [each for each in predictor.predictions(device) if chosen.takes(each.case)]
    if not taken:
        raise UsageError(chosen.complaint([case.names for case in predictor.collection.cases], "the results"))
    blocks = [f"# Modelled times: {text(device.title, 120)}", READING, ceilings_table(device)]
    for group in by_setting(taken):
        blocks += [f"## {heading(group[0])}", device_table(group)]
    return View(f"Modelled times: {device.title}", join(blocks), plain(map(row, taken)))


def plain(listed: Iterable[dict[str, object]]) -> list[dict[str, object]]:
    """Return predictions as rows of plain values, with every column."""
    return plain_rows(frame_of(COLUMNS, list(listed)))


def trust(predictor: Predictor) -> View:
    """Return how far predictions of live devices and of published figures are off."""
    pairs = live_pairs(predictor)
    listed = [
        {
            "source": pair.source.name, "target": pair.target.name, "relation": pair.relation.value,
            "problem": each.problem, "variant": each.estimate.source.record.identity.variant,
            "parameters": each.estimate.source.case.subject.parameters, "predicted": each.estimate.seconds,
            "predicted_low": ends.low if ends else None, "predicted_high": ends.high if ends else None,
            "measured": each.seconds, "error": each.error, "explained": each.estimate.share,
        }
        for pair in pairs for each, ends in pair.rows
    ]  # fmt: skip
    return View(TRUST, join([f"# {TRUST}", *_trust(predictor)]), listed)


def _trust(predictor: Predictor) -> list[str]:
    pairs, compared = live_pairs(predictor), published(predictor)
    live = [ALONE] if not pairs else [
        "**Live devices predict each other.** Nothing that was measured on the second device enters, but its ceilings. "
        "Both have measured the same code of the variant: what has changed in between is no case. "
        "The last column has intervals whose widths come from other problems alone. *Had nothing changed*: the median "
        "error of taking the time over as it is.",
        pair_table(pairs), *map(cases_table, pairs),
        "**Intervals.** Each case of a live device, predicted by all the others; widths are those of other problems. "
        "A relation without live devices has its width from a public table (docs/prediction.md).",
        coverage_table(coverage(predictor.residuals)),
    ]  # fmt: skip
    return [
        *live,
        "**Published figures.** They are compared with, never fitted to. The publications do not tell all of their "
        "settings; the rate is predicted at the size that a preset has for the publication, else at the largest that "
        "ran, whether or not it fits the memory of the device.",
        published_table(compared) or "None of these problems has a published figure.",
    ]


def page(
    predictor: Predictor, held: Iterable[list[list[Prediction]]], summary: str, folder: str
) -> tuple[str, list[Plot]]:
    """Return the suite's page of predictions, and its plots.

    Parameters
    ----------
    predictor : Predictor
    held : iterable
        From `parts.modelled.settings_by_device`.
    summary, folder : str
        Names of the summary's file and of the folder of plots, both beside the page.
    """
    blocks = [f"# {TRUST}", f"[Summary]({quote(summary)})", READING, *_trust(predictor), "# Every device"]
    plots: list[Plot] = []
    for columns in held:
        blocks += [f"## {heading(columns[0][0])}", matrix(columns)]
        subject = columns[0][0].key.subject
        plot = roofs_plot(columns, slug(*subject.family), f"Roofs: {subject.problem}")
        if plot and all(plot.name != other.name for other in plots):
            plots.append(plot)
            blocks += image(plot, folder)
    return join(blocks), plots


def beside(predictor: Predictor, subjects: Iterable[Subject], devices: Sequence[Device]) -> list[str]:
    """Return the settings of a problem on every device, as blocks of a table's page."""
    blocks = []
    for subject in dict.fromkeys(subject.on_any_inputs for subject in subjects):
        keys = [key for key in predictor.sources if key.subject == subject and not key.profile]
        for _, alike in groupby(sorted(keys, key=lambda key: key.cache), key=lambda key: key.cache):
            held = list(alike)
            columns = telling([[predictor.predict(key, device) for key in held] for device in devices])
            if columns:
                blocks += [f"Every device, {code(held[0].cache)} cache:", matrix(columns)]
    return [READING, *blocks] if blocks else []


def device_rows(
    predictor: Predictor, devices: Sequence[Device], subjects: Container[Subject]
) -> list[dict[str, object]]:  # fmt: skip
    """Return what is modelled of some subjects on some devices, as rows of plain values."""
    found = (each for device in devices for each in predictor.predictions(device) if each.key.subject in subjects)
    return plain(row(each) for each in found if each.outcome is not Outcome.MEASURED)
