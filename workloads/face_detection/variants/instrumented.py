"""Figures of load balance and of the stages, from an instrumented build that is never timed."""

from __future__ import annotations

from typing import Any

import numpy as np

from . import layout
from .detector import Detector


def figures(detector: Detector) -> dict[str, Any]:
    """Run an instrumented build of a detector's kernel once.

    Returns
    -------
    dict
        ``entered``: windows by stage, and those that passed; ``features`` evaluated; ``busy_slots``: share of
        work-item slots that evaluated a feature while the longest work of the work-group lasted;
        ``windows_max_over_mean``, ``features_max_over_mean``: over work-groups; ``batches``, ``batches_per_group``,
        ``work_groups``, ``atomics``: takings from the counter; ``queue_bytes``.
    """
    configuration, techniques = detector.configuration, detector.configuration.techniques
    tally, entered = _counted(detector)
    features, slots, windows, batches = (tally[name].astype(np.float64) for name in layout.TALLY.names or ())
    taken = batches.sum() + len(tally) if techniques.dynamic else 0
    return {
        "entered": [*entered.tolist(), len(detector.passing.read(detector.device))], "features": int(features.sum()),
        "busy_slots": float(features.sum() / slots.sum()) if slots.any() else 0.0,
        "windows_max_over_mean": float(windows.max() / windows.mean()),
        "features_max_over_mean": float(features.max() / features.mean()) if features.any() else 0.0,
        "batches": int(batches.sum()), "batches_per_group": float(batches.mean()),
        "work_groups": configuration.all_groups, "atomics": int(taken),
        "queue_bytes": detector.queue.nbytes if techniques.global_queue else 0,
    }  # fmt: skip


def _counted(detector: Detector) -> tuple[np.ndarray, np.ndarray]:
    """Return the tally of each work-group, `layout.TALLY`, and the windows that enter each stage, uint32."""
    setup, device = detector.setup, detector.device
    # Not through the setup's kernels: these are no part of what is timed.
    artifact = setup.session.build(detector.configuration.file, {**setup.profile, **detector.macros, "INSTRUMENT": 1})
    kernel = device.load(artifact).kernel("detect")
    groups, stages = detector.configuration.all_groups, detector.problem.cascade.stages
    counters = {"groups": device.empty(layout.TALLY.itemsize * groups), "entered": device.empty(4 * stages)}
    try:
        for buffer in counters.values():
            device.fill(buffer, 0)
        detector.detect(kernel, counters)
        device.finish()
        tally = device.read(counters["groups"], layout.TALLY, (groups,))
        return tally, device.read(counters["entered"], np.uint32, (stages,))
    finally:
        for buffer in counters.values():
            buffer.free()
