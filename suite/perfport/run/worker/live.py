"""A case while it is measured: built on every instance of its inputs, with the record that it fills."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from ...measure.contention import Watch
from ...measure.repeats import joined
from ...measure.sampling import Execution, Subject, Targets
from ...model.record import Overheads, Record, Status, Timing, Verification
from ...model.work import mean_of
from ...workload import Built, Variant
from ..cases import Case
from .audit import Audit
from .inputs import SharedInputs

#: What a record has only where its case has a result.
RESULTS = ("timing", "metric", "problem_bound", "datasheet_bound", "variant_bound", "energy")


@dataclass
class Live:
    """A case with its variant, built on every instance of the inputs, and its record so far.

    ``contended`` is why its samples are not to be trusted, once they are taken; empty where they are.
    """

    case: Case
    cls: type[Variant]
    record: Record
    instances: dict[str, Built] = field(default_factory=dict)
    audits: dict[str, Audit] = field(default_factory=dict)
    watch: Watch | None = None
    contended: str = ""

    @property
    def first(self) -> Built:
        """The instance that stands for the case where instances do not differ, or are not averaged."""
        return next(iter(self.instances.values()))

    def subject(self) -> Subject:
        """Return the case as the sampler takes it, with no samples yet."""
        instances = {
            name: Execution(built.launch, self.audits[name].prepare, self.audits[name].inspect)
            for name, built in self.instances.items()
        }
        return Subject(self.case.key, instances, self.cls.host, self.cls.host_driven)

    def describe(self) -> None:
        """Record what was compiled, and what it takes of the device."""
        self.record.unit = self.first.variant.unit
        artifacts = [artifact for built in self.instances.values() for artifact in built.setup.artifacts]
        self.record.source_hash = "+".join(sorted({artifact.source_hash[:16] for artifact in artifacts}))
        self.record.options = sorted({option for artifact in artifacts for option in artifact.options})
        self.record.resources = {kernel.name: kernel.resources for kernel in self.first.setup.kernels}

    def add(self, name: str, built: Built, inputs: SharedInputs, unharmed: Callable[..., None]) -> None:
        """Take the variant built on one instance of the inputs; ``inputs``, ``unharmed`` as of `Audit`."""
        self.instances[name], self.audits[name] = built, Audit(built, inputs, self.verified, unharmed)

    def verified(self, outcome: Verification) -> None:
        """Keep the worst of all verifications of the case."""
        known = self.record.verification
        self.record.verification = min(filter(None, (known, outcome)), key=lambda each: (each.passed, -each.worst))

    def timing(self, subject: Subject, targets: Targets) -> Timing:
        """Return what was measured, joined to what the workers before measured."""
        timing, earlier = subject.timing(targets), self.case.earlier
        return joined(earlier.timing, timing) if earlier and earlier.timing else timing

    def contention(self) -> str:
        """Return why the samples of this worker, or of those before, are not to be trusted; empty where they are."""
        reason = self.watch.reason() if self.watch else ""
        earlier = self.case.earlier
        if earlier and earlier.status is Status.CONTENDED and earlier.failure:
            reason = reason or earlier.failure.reason
        return reason

    def account(self) -> None:
        """Record what the last executions caused, and the variant's own figures."""
        earlier, own = self.case.earlier, self.record.verification
        before = earlier.verification.executions if earlier and earlier.verification else None
        executions = sum(audit.executions for audit in self.audits.values()) + (before or 0)
        self.record.verification = own and own.model_copy(update={"executions": executions})
        traffics = [built.variant.traffic() for built in self.instances.values()]
        self.record.traffic = mean_of([traffic for traffic in traffics if traffic]) if all(traffics) else None
        self.record.extra = self.first.variant.notes()

    def overheads(self, wall: float | None) -> Overheads:
        """Return what was paid outside the timed window, on the first instance; ``wall``: the host's time there."""
        setup = self.first.setup
        return Overheads(
            compile_s=setup.compile_s, layout_s=setup.layout_s, upload_s=setup.input_s,
            device_bytes=setup.device_bytes, wall_s=wall,
        )  # fmt: skip

    def withdraw(self) -> None:
        """Take back what was measured: a later execution has shown that it is no result."""
        self.record = self.record.model_copy(update={**dict.fromkeys(RESULTS), "overheads": Overheads()})

    def release(self) -> None:
        """Give the buffers back."""
        for built in self.instances.values():
            built.release()
