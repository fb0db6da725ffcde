"""Where the cases of an experiment run: ``executor`` of an experiment file."""

from __future__ import annotations

import re
from typing import Annotated, Literal

from pydantic import Field, field_validator, model_validator

from ..model.schema import Finite

Names = Annotated[list[str], Field(min_length=1)]
#: Slurm's partition, or several that a job may take, by commas.
PARTITION = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.,-]{0,99}")
#: Long name and value of an option of ``sbatch``: both become part of a line of the batch script.
OPTION = re.compile(r"[a-z][a-z0-9_-]*")
VALUE = re.compile(r"[A-Za-z0-9_ .,:;=+*/@%&|!()\[\]](?:[A-Za-z0-9_ .,:;=+*/@%&|!()\[\]-]{0,999})")
#: Options that perfport sets itself, and those that write files of their own or change what a job executes.
OWN_OPTIONS = frozenset({
    "array", "chdir", "error", "export", "export-file", "input", "job-name", "open-mode", "output", "parsable",
    "partition", "signal", "test-only", "time", "wait", "wrap",
})  # fmt: skip


class Partition(Finite):
    """One entry of ``executor.partitions``: what runs on the nodes of a Slurm partition.

    Attributes
    ----------
    devices : list of str
        Selectors of the nodes' devices.
    jobs : int
        Jobs that share the cases out among them, a group each in turn.
    sbatch : dict
        Further options of ``sbatch`` by their long names (``gres``, ``account``, ``constraint``), but for
        `OWN_OPTIONS`.
    """

    devices: Names
    jobs: int = Field(1, ge=1)
    sbatch: dict[str, str | int | bool] = Field(default_factory=dict)

    @field_validator("sbatch")
    @classmethod
    def _one_line_each(cls, options: dict[str, str | int | bool]) -> dict[str, str | int | bool]:
        for name, value in options.items():
            if not OPTION.fullmatch(name):
                raise ValueError(f"{name!r}: expected the long name of an option of sbatch, as in 'gres'")
            if name.replace("_", "-") in OWN_OPTIONS:
                raise ValueError(f"{name!r} is set by perfport, or not to be set: {', '.join(sorted(OWN_OPTIONS))}")
            if isinstance(value, str) and not VALUE.fullmatch(value):
                raise ValueError(
                    f"{name!r}: expected one line of letters, digits, spaces and _.,:;=+*/@%&|!()[]- that begins with "
                    f"no '-', got {value!r}"
                )
        return options


class Executor(Finite):
    """``executor``: where the cases run.

    Attributes
    ----------
    kind : str
        ``local``, this machine, or ``slurm``.
    partitions : dict of Partition
        Slurm's partitions by name.
    time : int
        Minutes that a job may take at a time.
    retries : int
        How often a job is submitted anew after its node failed, it was preempted, killed or out of time.
    """

    kind: Literal["local", "slurm"] = "local"
    partitions: dict[str, Partition] = Field(default_factory=dict)
    time: int = Field(60, gt=0)
    retries: int = Field(2, ge=0)

    @field_validator("partitions")
    @classmethod
    def _named(cls, partitions: dict[str, Partition]) -> dict[str, Partition]:
        for name in partitions:
            if not PARTITION.fullmatch(name):
                raise ValueError(f"{name!r}: expected letters, digits, '_', '.' and '-', the last not first")
        return partitions

    @model_validator(mode="after")
    def _complete(self) -> Executor:
        if self.kind == "slurm" and not self.partitions:
            raise ValueError("'kind: slurm' needs 'partitions'")
        if self.kind == "local" and self.model_fields_set - {"kind"}:
            raise ValueError("'partitions', 'time' and 'retries' belong to 'kind: slurm'")
        return self
