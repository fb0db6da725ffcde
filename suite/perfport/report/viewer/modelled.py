"""Predictions as the page holds them: a problem's setting by variant and device, each number with where it is from."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...judge.predict import Prediction
from ...model.names import setting
from ..parts.predicted import told


def modelled(columns: Sequence[Sequence[Prediction]]) -> dict[str, Any]:
    """Return one setting on every device.

    Parameters
    ----------
    columns : sequence of sequence of Prediction
        The same cases on each device.

    Returns
    -------
    dict
        ``cells`` has for each variant and device the kind (`parts.predicted.Told`), value, lower and upper end in
        ``unit``, why, and the marks of what is measured.
    """
    i = columns[0][0].case.record.identity
    metric = next((each.case.record.metric for each in columns[0] if each.case.record.metric), None)
    devices = [column[0].device for column in columns]
    return {
        "workload": i.workload, "problem": i.problem, "precision": i.precision,
        "setting": setting(i.preset, i.parameters), "unit": metric.unit if metric else "s",
        "direction": metric.direction if metric else "lower",
        "devices": [device.name if device.runtime else device.title for device in devices],
        "cells": {
            name: [_cell(column, name) for column in columns]
            for name in dict.fromkeys(each.key.variant for each in columns[0])
        },
    }  # fmt: skip


def _cell(column: Sequence[Prediction], variant: str) -> list[Any]:
    said = told(column, variant)
    ends = [said.value.value, said.value.low, said.value.high] if said.value else [None, None, None]
    return [said.kind, *ends, said.why, said.marks.replace(" ", "")]
