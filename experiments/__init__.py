"""Experiment definitions shipped with the suite."""
