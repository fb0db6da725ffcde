"""Every form of every peer is right: on the host, on a GPU where there is one, and PyTorch's GPU forms on the host."""

from __future__ import annotations

import secrets
from types import SimpleNamespace
from typing import Any

import pytest

from perfport import workload
from perfport.model.errors import UnavailableError, UnsupportedError
from perfport.workload import DeviceInfo, Peer, Session, Variant, build

FOUND = workload.discover()
PEERS = [
    (known.name, problem, cls)
    for known in FOUND.values()
    for problem, variants in known.variants.items()
    for cls in variants.values()
    if issubclass(cls, Peer)
]
#: Forms by which a peer that has two tunables or more would take minutes here.
SLOW = {"compiler": ("max-autotune-no-cudagraphs",), "kernels": ("autotuned",)}


def forms(cls: type[Variant], info: DeviceInfo) -> list[dict[str, Any]]:
    """The defaults of all tunables, then each other value of each beside the defaults of the rest."""
    defaults = {name: tunable.default_for(info) for name, tunable in cls.tunables.items()}
    others = [
        {**defaults, name: value}
        for name, tunable in cls.tunables.items()
        for value in tunable.values
        if value != defaults[name] and value not in SLOW.get(name, ())
    ]
    return [defaults, *others]


def right(device: Any, where: str, cls: type[Variant]) -> None:
    """Build, execute and check every form at every size that the problem is checked at, twice each."""
    for parameters in cls.problem.check_sizes:
        task = cls.problem(cls.problem.Parameters(**parameters), secrets.randbelow(2**31))
        session = Session(device, task, FOUND[where].folder)
        for tunables in forms(cls, device.info):
            try:
                made = build(cls, session, tunables, {})
            except (UnsupportedError, UnavailableError) as error:
                refused = str(error)
                continue
            for _ in range(2):
                verified = made.execute()
                assert verified.passed, (task.seed, parameters, tunables, verified)
            made.release()
            refused = ""
        session.close()
    if refused:
        pytest.skip(refused)


@pytest.mark.parametrize(("where", "problem", "cls"), PEERS, ids=lambda value: getattr(value, "name", None))
def test_a_peer_has_forms_to_choose_from(where: str, problem: str, cls: type[Variant]) -> None:
    assert all(len(set(tunable.values)) > 1 for tunable in cls.tunables.values())
    defaults = {
        tunable.default_for(SimpleNamespace(kind=kind)) for tunable in cls.tunables.values() for kind in ("cpu", "gpu")
    }  # type: ignore[arg-type]
    assert defaults <= {value for tunable in cls.tunables.values() for value in tunable.values}
