"""The simulator with its plugin, and the planted variants counted there."""

from __future__ import annotations

import pytest
from counted import PLANTED

from perfport.machine import simulator
from perfport.model.errors import PerfportError
from perfport.untimed.count import Count, read, simulated, survey


@pytest.fixture(scope="session")
def plugin() -> simulated.Counter:
    try:
        simulator.find()
    except PerfportError as error:
        pytest.skip(f"no simulator: {error}")
    using, why = simulated.counter()
    if why:
        pytest.skip(f"the plugin cannot be built: {why}")
    return using


@pytest.fixture(scope="session")
def planted(plugin: simulated.Counter, tmp_path_factory: pytest.TempPathFactory) -> list[Count]:
    """All variants of the planted problem at its first two sizes, with a trace."""
    folder = tmp_path_factory.mktemp("counts") / "planted"
    options = survey.Options(what="counted", workloads=[str(PLANTED)], out=folder, coalescing=True)
    where, found = survey.run(options)
    assert where == folder and read(folder) == found
    return found
