"""Modelled times for devices that were not measured: what is carried over, how far it can be trusted, what it lacks."""

from .devices import Device, Origin, Relation, changed, from_profile, of_profile
from .model import Pattern
from .predictor import Counted, Key, Outcome, Prediction, Predictor, Seen
from .widths import CONFIDENCE, WIDEST, Coverage, Residual, coverage

__all__ = [
    "CONFIDENCE", "WIDEST", "Counted", "Coverage", "Device", "Key", "Origin", "Outcome", "Pattern", "Prediction",
    "Predictor", "Relation", "Residual", "Seen", "changed", "coverage", "from_profile", "of_profile",
]  # fmt: skip
