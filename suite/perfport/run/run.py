"""`perfport run`: an experiment on the executor that it names."""

from __future__ import annotations

from . import local, slurm
from .experiment import find, load
from .local import Finished, Options

#: What runs an experiment, by its ``executor.kind``.
EXECUTORS = {"local": local.run, "slurm": slurm.run}


def run(name: str, options: Options) -> Finished:
    """Run an experiment: a file, or the name of one that ships.

    Raises
    ------
    UsageError
        For bad input.
    InfrastructureError
        If no device is usable or the results folder cannot be written.
    """
    definition = load(path := find(name))
    return EXECUTORS[definition.executor.kind](path, definition, options)
