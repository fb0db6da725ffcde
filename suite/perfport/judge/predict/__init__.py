"""Modelled times for devices that were not measured: what is carried over, how far it can be trusted, what it lacks."""

from .check import Pair, Published, live_pairs, published
from .devices import Device, Origin, Relation, changed, from_profile, of_profile
from .model import Pattern
from .predictor import (
    Counted,
    Key,
    Outcome,
    Prediction,
    Predictor,
    Seen,
    find_target,
    nothing_counted,
    targets,
)
from .table import COLUMNS, figure_of, rows
from .widths import CONFIDENCE, WIDEST, Coverage, Residual, coverage

__all__ = [
    "COLUMNS", "CONFIDENCE", "WIDEST", "Counted", "Coverage", "Device", "Key", "Origin", "Outcome", "Pair", "Pattern",
    "Prediction", "Predictor", "Published", "Relation", "Residual", "Seen", "changed", "coverage", "figure_of",
    "find_target", "from_profile", "live_pairs", "nothing_counted", "of_profile", "published", "rows", "targets",
]  # fmt: skip
