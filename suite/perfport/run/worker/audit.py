"""Executions that are verified while they are timed: which, only this process knows."""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable

from ...model.record import Verification
from ...workload import Built, digest_of

#: Executions of a case that are compared with the reference, before, while and after it is timed, where time allows it.
EXECUTIONS = 20
#: Beyond them, or where comparing has taken longer than executing, one timed execution in so many is.
EVERY = 8


class Audit:
    """Verifies executions of one built variant.

    Outputs are poisoned before every timed execution, so that none may leave what an earlier one computed. Outputs that
    are bit for bit those that passed before are not compared again with the reference.

    Parameters
    ----------
    built : Built
    keep : callable
        Takes each outcome.
    unharmed : callable
        Raises `RefusedError` where code was replaced that times or verifies (`Integrity.restore`).

    Attributes
    ----------
    executions : int
        How many were compared.
    """

    def __init__(self, built: Built, keep: Callable[[Verification], None], unharmed: Callable[..., None]) -> None:
        self.built, self.keep, self.unharmed = built, keep, unharmed
        self.executions = 0
        self.error: Exception | None = None
        self._passed: dict[bytes, Verification] = {}
        self._executing = self._comparing = 0.0
        self._started = time.perf_counter()

    def prepare(self) -> None:
        """Make the outputs unusable ahead of a timed execution."""
        self.built.poison()
        self._started = time.perf_counter()

    def inspect(self) -> None:
        """Compare a timed execution; where enough were, or it takes long, by chance. Errors are kept for `complete`."""
        ended = time.perf_counter()
        self._executing += ended - self._started
        enough = self.executions >= EXECUTIONS or self._comparing > self._executing
        if self.error or (enough and secrets.randbelow(EVERY)):
            return
        try:
            self.compare()
        except Exception as error:  # ends the case, and no other: when its samples are complete
            self.error = error
        self._comparing += time.perf_counter() - ended

    def compare(self) -> None:
        """Compare what the last execution left. Raises `RefusedError` where code of the harness was replaced."""
        self.executions += 1
        outputs = self.built.outputs()
        self.unharmed(self.built.setup)
        digest = digest_of(outputs)
        if digest not in self._passed:
            verified = self.built.verify(outputs)
            if verified.passed:
                self._passed = {digest: verified}
            self.keep(verified)

    def execute(self) -> None:
        """Execute once, untimed, and compare."""
        self.prepare()
        self.built.launch()
        self.built.setup.device.finish()
        self.compare()

    def complete(self, seconds: float) -> None:
        """Execute and compare until there are `EXECUTIONS`, once at least, for no longer than this.

        Raises
        ------
        Exception
            What comparing a timed execution ended with.
        """
        if self.error:
            raise self.error
        until = time.perf_counter() + seconds
        self.execute()
        while self.executions < EXECUTIONS and time.perf_counter() < until:
            self.execute()
