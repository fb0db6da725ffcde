"""Executions that are verified while they are timed: which, and on which inputs, only this process knows."""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable

from ...model.record import Verification
from ...workload import Built, Peer, digest_of
from .inputs import SharedInputs

#: Executions of a case that are compared with the reference, before, while and after it is timed, where time allows it.
EXECUTIONS = 20
#: Beyond them, or where comparing has taken longer than executing, one timed execution in so many is.
EVERY = 8


class Audit:
    """Verifies executions of one built variant.

    Outputs are poisoned before and after every timed execution, so that none may leave what an earlier one computed,
    nor take it from a rival; scratch before those that are not timed. Outputs that are bit for bit those that passed
    before, by checksums that the device forms, are not read, nor compared again with the reference.

    Parameters
    ----------
    built : Built
    inputs : SharedInputs
        Those that the variant was built on.
    keep : callable
        Takes each outcome.
    unharmed : callable
        Raises `RefusedError` where code was replaced that times or verifies (`Integrity.restore`).

    Attributes
    ----------
    executions : int
        How many were compared.
    exchanges : bool
        Whether inputs are exchanged between executions: each then has others than the one before.
    timed_on_drawn : bool
        Whether timed executions take part in that.
    """

    def __init__(
        self, built: Built, inputs: SharedInputs, keep: Callable[[Verification], None], unharmed: Callable[..., None]
    ) -> None:
        self.built, self.inputs, self.keep, self.unharmed = built, inputs, keep, unharmed
        self.executions = 0
        self.error: Exception | None = None
        self.exchanges = self.timed_on_drawn = False
        self._drawn = False  # the inputs of the last execution
        self._passed: dict[bool, tuple[list[int], bytes]] = {}  # of outputs in buffers, and of those handed over
        self._executing = self._comparing = 0.0
        self._started = time.perf_counter()

    def exchange(self, timed: bool) -> None:
        """Exchange inputs from now on, where the problem and the variant allow it; ``timed``: for timed ones too."""
        takes = not isinstance(self.built.variant, Peer) and self.built.setup.by_buffers
        self.exchanges = takes and self.inputs.can_exchange
        self.timed_on_drawn = timed and self.exchanges

    def prepare(self) -> None:
        """Change the inputs, and make the outputs unusable, ahead of a timed execution."""
        self._change(self.timed_on_drawn)
        self.built.poison()
        self._started = time.perf_counter()

    def _change(self, exchanges: bool) -> None:
        self._drawn = exchanges and not self._drawn
        self.inputs.hold(self._drawn)

    def inspect(self) -> None:
        """Compare a timed execution; where enough were, or it takes long, by chance. Errors are kept for `complete`."""
        ended = time.perf_counter()
        self._executing += ended - self._started
        enough = self.executions >= EXECUTIONS or self._comparing > self._executing
        try:
            if self.error or (enough and secrets.randbelow(EVERY)):
                self.untouched()
                return
            self.compare()
        except Exception as error:  # ends the case, and no other: when its samples are complete
            self.error = self.error or error
        finally:
            self.built.poison()
        self._comparing += time.perf_counter() - ended

    def untouched(self) -> None:
        """Raise `RefusedError` where an execution has changed its inputs, which are restored."""
        self.inputs.compare(self.built.setup.inputs)

    def compare(self) -> None:
        """Compare what the last execution left. Raises `RefusedError` where inputs, or code of the harness, changed."""
        self.executions += 1
        built, held = self.built, self.inputs.held
        sums = self.inputs.contents.checksums(built.buffers)
        known, left = self._passed.get(held), None
        if not known or known[0] != sums:
            left = built.left()
        handed = built.handed()
        self.unharmed(built.setup)
        self.untouched()
        digest = digest_of(handed)
        if known == (sums, digest):
            return
        verified = built.verify({**(left or built.left()), **handed}, self.inputs.problem)
        if verified.passed:
            self._passed[held] = sums, digest
        self.keep(verified)

    def execute(self) -> None:
        """Execute once, untimed, behind a gate or not, and compare; leaves the session's own inputs."""
        variant, device = self.built.variant, self.built.setup.device
        self._change(self.exchanges)
        try:
            self.built.poison(scratch=True)
            if variant.host or variant.host_driven or secrets.randbelow(2):
                self.built.launch()
            else:
                device.timed(self.built.launch)
            device.finish()
            self.compare()
        finally:
            self.inputs.hold(False)

    def complete(self, seconds: float) -> None:
        """Execute and compare until there are `EXECUTIONS`, once at least, for no longer than this.

        Where inputs are exchanged that is once on each; the last execution is on those that the variant was built on.

        Raises
        ------
        Exception
            What comparing a timed execution ended with.
        """
        if self.error:
            raise self.error
        until = time.perf_counter() + seconds
        self.execute()
        while self._drawn or (self.executions < EXECUTIONS and time.perf_counter() < until):
            self.execute()
