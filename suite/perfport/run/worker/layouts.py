"""Whether what variants declare to be a layout holds inputs in another order or type, and no results of them."""

from __future__ import annotations

import copy
import secrets
from collections.abc import Callable
from functools import partial

import numpy as np

from ...backend import Buffer
from ...measure.contents import Contents
from ...model.errors import RefusedError
from ...workload import Built, Problem, Session
from ...workload.setup import INPUT, LAYOUT

#: Bytes that mixed arrays have from one side or the other together: no element of an input is longer.
RUN = 16


class Layouts:
    """Makes layouts of inputs that are partly one problem's and partly another's, and looks for bytes of neither.

    An element of a re-ordering, padding or conversion depends on one element of the inputs, so that its bytes are those
    of the one problem's layout, or of the other's. What is computed of several elements is of neither.

    Parameters
    ----------
    session : Session
    others : Session, optional
        Of inputs that may stand in the place of the session's (`SharedInputs`); without it nothing is looked for.
    contents : Contents
    """

    def __init__(self, session: Session, others: Session | None, contents: Contents) -> None:
        self._session, self._others, self._contents = session, others, contents
        self._known: set[str] = set()

    def check(self, own: Built, build: Callable[[Session], Built]) -> None:
        """Look at the layouts of a variant that were not looked at before; ``build`` builds it in a session.

        Raises
        ------
        RefusedError
            With the layout that holds bytes of neither.
        """
        if self._others is None:
            return
        theirs = self._others.inputs
        keys = [k for k in own.setup.inputs if k.startswith(LAYOUT) and k in theirs and k not in self._known]
        if not keys:
            return
        mixed = self._mixed(self._others)
        try:
            built = build(mixed)
            try:
                for key in keys:
                    self._look_at(key, mixed.inputs.get(key), own.setup.inputs[key], theirs[key])
                    self._known.add(key)
            finally:
                built.release()
        finally:
            mixed.close()

    def _look_at(self, key: str, mixed: Buffer | None, one: Buffer, other: Buffer) -> None:
        if mixed is None or {mixed.nbytes, other.nbytes} != {one.nbytes}:
            sizes = f"{one.nbytes}, {other.nbytes} and {mixed.nbytes if mixed else 'no'} bytes"
            raise RefusedError(f"refused: {key} has {sizes} on inputs of one size")
        if count := self._contents.strangers(mixed, one, other):
            raise RefusedError(
                f"refused: {key} is computed and not re-ordered: of two inputs mixed by elements, {count} of its "
                f"{mixed.nbytes} bytes are in neither's layout"
            )

    def _mixed(self, others: Session) -> Session:
        """A session whose inputs are partly those of the one, partly those of the other."""
        session, theirs = self._session, others.inputs
        problem = blend(session.problem, others.problem, secrets.randbits(32))
        made = Session(session.device, problem, session.folder, timed=False, artifacts=session.artifacts)
        for key, own in session.inputs.items():
            if key.startswith(INPUT) and key in theirs and own.nbytes == theirs[key].nbytes:
                made.shared(key, partial(self._mix, own, theirs[key]))
        return made

    def _mix(self, one: Buffer, other: Buffer) -> Buffer:
        out: Buffer = self._session.device.empty(one.nbytes)
        self._contents.blend(one, other, out)
        return out


def blend(one: Problem, other: Problem, seed: int) -> Problem:
    """Return a problem whose arrays have each run of `RUN` bytes from one or the other; all else is the one's."""
    made = copy.copy(one)
    for name, own in vars(one).items():
        theirs = vars(other).get(name)
        if isinstance(own, np.ndarray) and isinstance(theirs, np.ndarray) and _alike(own, theirs):
            setattr(made, name, _blended(own, theirs, seed))
    return made


def _alike(own: np.ndarray, theirs: np.ndarray) -> bool:
    return (own.shape, own.dtype) == (theirs.shape, theirs.dtype) and own.itemsize in (1, 2, 4, 8, 16)


def _blended(own: np.ndarray, theirs: np.ndarray, seed: int) -> np.ndarray:
    together = RUN // own.itemsize
    whole = own.size // together * together
    made = own.flatten()
    chosen = np.random.default_rng(seed).random(whole // together) < 0.5
    made[:whole].reshape(-1, together)[chosen] = theirs.reshape(-1)[:whole].reshape(-1, together)[chosen]
    return made.reshape(own.shape)
