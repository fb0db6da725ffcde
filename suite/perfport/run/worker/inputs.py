"""The inputs that the variants of a group share: compared after executions, and exchanged for others."""

from __future__ import annotations

from collections.abc import Mapping

from ...backend import Buffer
from ...measure.contents import Contents
from ...model.errors import RefusedError, UsageError
from ...workload import Problem, Session


class SharedInputs:
    """The input buffers of a session, and those of a session with other inputs that their contents come from.

    A built variant has the addresses of the first alone. What it reads there is what the problem in `problem` says.

    Parameters
    ----------
    session : Session
    drawn : Session, optional
        Contents are exchanged between the two; without it they cannot be.
    contents : Contents
    """

    def __init__(self, session: Session, drawn: Session | None, contents: Contents) -> None:
        self._session, self._drawn, self.contents = session, drawn or session, contents
        self.can_exchange = drawn is not None
        self._exchanged: list[tuple[Buffer, Buffer]] = []
        self._sums: dict[tuple[bool, str], int] = {}

    @property
    def held(self) -> bool:
        """Whether the buffers hold the drawn inputs."""
        return bool(self._exchanged)

    @property
    def problem(self) -> Problem:
        """The problem whose inputs the buffers hold."""
        return (self._drawn if self.held else self._session).problem

    def hold(self, drawn: bool) -> None:
        """Enqueue that the buffers hold the drawn inputs, or the session's own.

        Raises
        ------
        UsageError
            Where these are of another size: by `inputs_by_buffers` or `Problem.redrawn` they are not.
        """
        if drawn == self.held:
            return
        if drawn:
            others = self._drawn.inputs
            pairs = {key: (own, others[key]) for key, own in self._session.inputs.items() if key in others}
            for key, (own, other) in pairs.items():
                if own.nbytes != other.nbytes:
                    means = "inputs_by_buffers" if self.problem.inputs_by_buffers else "redrawn"
                    raise UsageError(
                        f"{type(self.problem).__name__}.{means}: {key} has {own.nbytes} bytes, and "
                        f"{other.nbytes} on other inputs"
                    )
            self._exchanged = list(pairs.values())
        for own, other in self._exchanged:
            self.contents.exchange(own, other)
        if not drawn:
            self._exchanged = []

    def compare(self, used: Mapping[str, Buffer]) -> None:
        """Compare what these buffers hold with what they held when they were first seen; changes are undone.

        Raises
        ------
        RefusedError
            With the names of those that were changed.
        """
        sums = dict(zip(used, self.contents.checksums(list(used.values())), strict=True))
        changed = [key for key, total in sums.items() if self._sums.setdefault((self.held, key), total) != total]
        if not changed:
            return
        source = self._drawn if self.held else self._session
        self.hold(False)
        for key in changed:
            again = source.again(key)
            self.contents.exchange(source.inputs[key], again)
            source.device.finish()
            again.free()
        raise RefusedError(f"refused: an execution changed {', '.join(changed)}, which others read")
