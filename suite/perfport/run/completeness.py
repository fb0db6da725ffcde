"""Whether a stored run has a record for every case of its plan."""

from __future__ import annotations

import itertools

from ..model.device import DeviceInfo
from ..model.errors import UsageError
from ..store.results import EXPERIMENT, Run
from .experiment import Study, load


def incomplete(run: Run) -> str:
    """Return what a run lacks of its plan, in words; empty where it is whole, or where nobody can tell.

    A run says how many cases were planned. Of one that does not, older than that, the experiment file tells which
    variants and presets it names: each needs a record at least. Nothing is known of a run that was filtered.
    """
    if run.planned is not None:
        return f"{len(run.records)} of {run.planned} planned cases have a record" if run.incomplete else ""
    command = {str(word) for word in run.environment.get("command") or []}
    if run.environment.get("imported") or command & {"-b", "--benchmark"}:
        return ""
    try:
        studies = load(run.folder / EXPERIMENT).experiments
    except UsageError:
        return ""
    missing = [f"experiments[{n}] ({what})" for n, study in enumerate(studies) for what in _missing(study, run)]
    return f"no record of {', '.join(missing)}" if missing else ""


def _missing(study: Study, run: Run) -> list[str]:
    devices = [DeviceInfo.model_validate(device) for device in (run.environment.get("devices") or {}).values()]
    if not any(study.devices is None or any(map(device.matches, study.devices)) for device in devices):
        return []
    held = [record.identity for record in run.records if study.holds(record.identity)]
    recorded = {(identity.preset, identity.variant) for identity in held}
    missing = []
    presets: list[str | None] = [*study.presets] if study.presets else [None]
    variants: list[str | None] = [*study.variants] if study.variants else [None]
    for preset, variant in itertools.product(presets, variants):
        if not any(preset == p and variant in (None, v) for p, v in recorded):
            missing.append(" ".join(filter(None, (f"{study.workload}/{study.problem}", preset, variant))))
    return missing
