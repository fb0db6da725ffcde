"""``perfport show``: one case for the author of a kernel."""

from __future__ import annotations

import contextlib
import re
import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .. import workload
from ..backend import Artifact
from ..backend.offline import OfflineDevice, cuda_info, opencl_info
from ..machine import discovery, private
from ..measure.sampling import Targets
from ..model.device import DeviceInfo
from ..model.errors import InfrastructureError, UnsupportedError, UsageError, nearest
from ..model.record import Identity, Record
from ..run import experiment, local, plan
from ..run.experiment import Experiment, Study
from ..run.runner import stamp
from ..store.results import EXPERIMENT, Run, each_run
from ..workload import Session, Setup, Variant, Workload
from .machine_code import outline

#: What kernels are compiled for where nothing else is said.
TARGET = "sm_90"


@dataclass
class Subject:
    """What ``show`` was asked about: a stored record (with its run), or a variant by name."""

    identity: Identity
    workloads: dict[str, Workload]
    workload_paths: list[str]
    record: Record | None = None
    run: Run | None = None
    seed: int = 1

    @property
    def workload(self) -> Workload:
        """The case's workload."""
        return self.workloads[self.identity.workload]

    @property
    def variant(self) -> type[Variant]:
        """The variant's class."""
        return self.workload.variant(self.identity.problem, self.identity.variant)


def find(case: str, results: Path, preset: str, workload_paths: list[str]) -> Subject:
    """Find a case by its record's key, or by ``workload/problem/variant``.

    Raises
    ------
    UsageError
        If there is neither.
    """
    workloads = workload.discover(workload_paths)
    if case.count("/") == 2:
        name, problem, variant = case.split("/")
        if name not in workloads:
            raise UsageError(f"no workload {name!r}{nearest(name, workloads)}; there are: {', '.join(workloads)}")
        cls = workloads[name].problem(problem)
        chosen = workloads[name].variant(problem, variant)
        if preset not in cls.presets:
            raise UsageError(f"--preset: {preset!r} is not one of {', '.join(cls.presets)}")
        identity = Identity(
            workload=name, problem=problem, preset=preset, parameters=cls.presets[preset], variant=variant,
            role=chosen.role, rung=chosen.rung, devices=[], backend="", precision=chosen.precision,
        )  # fmt: skip
        return Subject(identity, workloads, workload_paths)
    for run in each_run(results):
        for record in run.records:
            if record.key == case:
                return Subject(record.identity, workloads, workload_paths, record, run, record.seed)
    raise UsageError(f"{case}: no record of this key under {results}; give a key or workload/problem/variant")


def described(subject: Subject) -> dict[str, Any]:
    """Return the record, or what is known of the variant, as JSON has it."""
    if subject.record:
        return subject.record.model_dump(mode="json", exclude_none=True)
    cls, problem = subject.variant, subject.variant.problem
    tunables = {name: {"default": t.default, "values": t.values} for name, t in cls.tunables.items()}
    solved = {"title": problem.title, "presets": problem.presets, "headline": dict(problem.headline)}
    return {
        "variant": cls.name, "title": cls.title, "role": cls.role, "source": cls.source, "needs": cls.needs,
        "tunables": tunables, "file": f"{cls.__module__}", "problem": solved,
    }  # fmt: skip


def _cuda(target: str) -> DeviceInfo:
    if not re.fullmatch(r"sm_\d{2,3}", target):
        raise UsageError(f"--target {target}: expected the number of a compute capability, as in sm_90")
    return cuda_info(target)


def _as_compiled(subject: Subject, target: str | None) -> DeviceInfo:
    """Return for what source is shown: a CUDA target that was asked for, else the backend that ran the case.

    Of what never ran that is OpenCL where the variant takes it, which needs no compiler.
    """
    ran = subject.identity.backend
    if target or ran == "cuda":
        return _cuda(target or TARGET)
    for info in map(opencl_info, ("cpu", "gpu")):
        with contextlib.suppress(UnsupportedError):
            subject.variant.require(info)
            return info
    return _cuda(TARGET)


def _artifacts(subject: Subject, info: DeviceInfo) -> list[Artifact]:
    """Build the case's kernels without a device."""
    device = OfflineDevice(info)
    cls = subject.workload.problem(subject.identity.problem)
    problem = cls(cls.Parameters.model_validate(subject.identity.parameters), subject.seed)
    tunables = {name: tunable.default_for(info) for name, tunable in subject.variant.tunables.items()}
    setup = Setup(Session(device, problem, subject.workload.folder), {**tunables, **subject.identity.tunables}, {})
    subject.variant.require(info)
    subject.variant(setup)
    return list({artifact.source_hash: artifact for artifact in setup.artifacts}.values())


def source(subject: Subject, target: str | None) -> str:
    """Return the source of every kernel file of the case, with its options and macros; CUDA's for a ``target``."""
    made = _artifacts(subject, _as_compiled(subject, target))
    parts = [f"// {a.name} {' '.join(a.options)}\n{a.listing['source']}" for a in made]
    return "\n".join(parts)


def ptx(subject: Subject, target: str) -> str:
    """Return the PTX of every kernel file of the case."""
    return "\n".join(artifact.listing["ptx"] for artifact in _artifacts(subject, _cuda(target)))


def sass(subject: Subject, target: str) -> str:
    """Return the machine code of every kernel file of the case, and before it what its loops consist of.

    Raises
    ------
    InfrastructureError
        Without ``nvdisasm`` on the path.
    """
    artifacts = _artifacts(subject, _cuda(target))
    tool = shutil.which("nvdisasm")
    if tool is None:
        raise InfrastructureError(
            "--sass needs nvdisasm on the PATH (the CUDA toolkit, or the wheel nvidia-cuda-nvdisasm)"
        )
    parts = []
    with tempfile.TemporaryDirectory() as folder:
        for artifact in artifacts:
            cubin = Path(folder) / "kernel.cubin"
            cubin.write_bytes(artifact.code)
            done = subprocess.run([tool, "-c", str(cubin)], capture_output=True, text=True, check=False)
            parts.append(f"// {artifact.name}\n{outline(done.stdout)}{done.stdout or done.stderr}")
    return "\n".join(parts)


def log(subject: Subject) -> str:
    """Return the log of a stored failure."""
    if subject.record is None or subject.record.failure is None:
        return "no failure is recorded for this case"
    return f"{subject.record.failure.reason}\n{subject.record.failure.log}"


def rerun(subject: Subject, devices: list[str] | None, command: list[str]) -> list[Record]:
    """Run just this case again, into a results folder of its own, with the record's inputs."""
    identity = subject.identity
    parameters = {name: [value] for name, value in identity.parameters.items()}
    study = Study(
        workload=identity.workload, problem=identity.problem, parameters=parameters,
        presets=[identity.preset] if identity.preset else None, variants=[identity.variant],
        profiles=[identity.profile or "native"], tunables={name: [value] for name, value in identity.tunables.items()},
    )  # fmt: skip
    targets = experiment.load(subject.run.folder / EXPERIMENT).measurement if subject.run else Targets()
    if subject.record and subject.record.timing:
        targets = targets.model_copy(update={"cache": subject.record.timing.cache})
    definition = Experiment(
        name="rerun", devices=devices or identity.devices or ["all"], experiments=[study], measurement=targets,
        seed=subject.seed, instances=max(1, len(identity.inputs)),
    )  # fmt: skip
    discovered = discovery.discover()
    chosen = local.choose(definition.devices, discovered, "--device")
    groups = plan.make(definition, identity.variant, subject.workloads, chosen, definition.seed)
    if subject.record and subject.record.verification:  # where it was wrong, it shall be so again
        again = {"verify_seed": subject.record.verification.seed}
        groups = [group.model_copy(update=again) for group in groups]
    folder = local.RESULTS / f"rerun-{stamp()}"
    options = local.Options(workloads=subject.workload_paths, command=command)
    file = private.folder() / "rerun.yaml"
    file.write_text(definition.model_dump_json(indent=1))
    prepared = local.Prepared(groups, definition, file, subject.workloads, folder, options, discovered)
    return local.execute(prepared).records
