"""Which predictions a suite shows: the settings at which problems stand on GPUs, on every device."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ...judge.headline import standing
from ...judge.predict import Outcome, Prediction, Predictor, targets
from ...store.case import Subject
from ...store.collection import Collection

#: Of these there is a number.
SHOWN = (Outcome.MEASURED, Outcome.MODELLED)


def settings_by_device(predictor: Predictor) -> list[list[list[Prediction]]]:
    """Return each setting at which a problem stands on GPUs, as a column for each device; profiles are of GPUs."""
    subjects = _standing(predictor.collection)
    predicted = [list(predictor.predictions(device, subjects)) for device in targets(predictor)]
    held = (_columns(predicted, subject) for subject in subjects)
    return [columns for columns in held if columns]


def _standing(collection: Collection) -> list[Subject]:
    chosen = []
    for subjects in collection.families.values():
        sites = [site for site in collection.sites if site.kind != "cpu" and not site.several]
        stands = standing(collection, subjects, sites)
        chosen += [each.subject.on_any_inputs for each in stands.values()]
    return list(dict.fromkeys(chosen))


def _columns(predicted: Iterable[Sequence[Prediction]], subject: Subject) -> list[list[Prediction]]:
    own = [[each for each in column if each.key.subject == subject and not each.key.profile] for column in predicted]
    return telling([column for column in own if column])


def telling(columns: list[list[Prediction]]) -> list[list[Prediction]]:
    """Return the columns of profiles and of the live devices that there is a number of; none of what CPUs alone ran."""
    kept = [
        column for column in columns
        if not column[0].device.runtime or any(each.outcome in SHOWN for each in column)
    ]  # fmt: skip
    return kept if any(each.case.site.kind != "cpu" for column in columns for each in column) else []
