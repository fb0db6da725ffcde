"""Energy of executions in a simulated time: what a device consumes is known, and each fault of a counter is planted."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import pytest

from perfport.machine.energy_counter import CounterError
from perfport.measure.energy import LEAST_S, LOOPS, REST_LIMIT_S, UPDATES, Load, Meter
from perfport.model.record import Energy

REST, BUSY = 20.0, 200.0  # W


class World:
    """A device with a counter that is updated now and then; time passes by sleeping, executing and reading alone.

    Parameters
    ----------
    update : float
        Seconds between updates of the counter.
    each : float
        Seconds of an execution.
    """

    domain = "simulated"

    def __init__(self, update: float = 0.02, each: float = 1e-3) -> None:
        self.update, self.each = update, each
        self.now = self.energy = self.told = 0.0
        self.enqueued = self.announced = self.executed = 0
        self.fault: Callable[[float], float] = lambda told: told
        self.random = random.Random(5)
        self.noise = 0.0

    def clock(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.passes(seconds, REST)

    def passes(self, seconds: float, watts: float) -> None:
        while seconds > 0:
            left = self.update * (int(self.now / self.update + 1e-9) + 1) - self.now
            step = min(seconds, left)
            self.now, self.energy, seconds = self.now + step, self.energy + step * watts, seconds - step
            if step == left:
                self.told = self.energy

    def joules(self) -> float:
        self.passes(1e-5, REST)
        return self.fault(self.told)

    def execute(self) -> None:
        self.enqueued += 1
        self.executed += 1

    def finish(self) -> None:
        self.passes(self.each * self.enqueued, BUSY * (1 + self.noise * self.random.uniform(-1, 1)))
        self.enqueued = 0

    def announce(self) -> None:
        self.announced += 1

    def meter(self) -> Meter:
        return Meter(self, self.clock, self.sleep)

    def load(self) -> Load:
        return Load(self.execute, self.finish, self.announce)


@pytest.mark.parametrize("update", [0.001, 0.02, 0.1, 0.3])
@pytest.mark.parametrize("each", [1e-4, 1e-3, 0.03, 0.4, 2.5])
def test_the_interval_holds_the_energy_of_an_execution(update: float, each: float) -> None:
    world = World(update, each)
    meter = world.meter()
    assert meter.idle_watts == pytest.approx(REST, rel=1e-3)
    assert meter.update_s == pytest.approx(max(update, 0.001), rel=0.1)
    found = meter.energy([world.load()])
    assert found.joules and found.joules.low <= BUSY * each <= found.joules.high
    width = (found.joules.high - found.joules.low) / found.joules.value
    assert width < 0.12 and (width < 0.03 or each > 0.01), width
    assert found.loops == LOOPS and found.domain == "simulated" and found.idle_watts == meter.idle_watts
    assert found.seconds and found.seconds >= LOOPS * max(LEAST_S, UPDATES * update) * 0.9
    assert found.executions and found.seconds == pytest.approx(found.executions * each, rel=0.1)
    assert found.watts == pytest.approx(BUSY, rel=0.1) and world.announced > LOOPS


def test_what_differs_between_loops_is_in_the_interval() -> None:
    steady, noisy = World(each=0.4), World(each=0.4)
    noisy.noise = 0.3
    widths = []
    for world in (steady, noisy):
        joules = world.meter().energy([world.load()]).joules
        assert joules
        widths.append((joules.high - joules.low) / joules.value)
    assert widths[1] > 2 * widths[0]


def test_several_instances_are_their_geometric_mean() -> None:
    world = World()
    quick, slow = world.load(), Load(lambda: [world.execute() for _ in range(4)] and None, world.finish, world.announce)
    found = world.meter().energy([quick, slow])
    assert found.joules and found.joules.value == pytest.approx(2 * BUSY * world.each, rel=0.02)
    assert found.seconds and found.seconds > 2 * LOOPS * LEAST_S


def test_one_execution_is_one_however_long_and_none_is_enqueued_without_end() -> None:
    world = World(each=30.0)
    assert world.meter().energy([world.load()]).joules
    assert world.executed == LOOPS + 2  # one to settle, one to the first update
    for each in (0.0, 1e-6):
        at_once = World(each=each)
        load = at_once.load()
        load.run(1.0, at_once.clock)
        load.run(1.0, at_once.clock)
        assert at_once.executed == 10_001, each


def refused(world: World) -> str:
    with pytest.raises(CounterError) as error:
        world.meter().energy([world.load()])
    return str(error.value)


def test_a_counter_that_stands_still() -> None:
    world = World()
    world.fault = lambda told: 3.0
    assert "updated 0 times" in refused(world) and world.now > REST_LIMIT_S
    later = World()
    later.fault = lambda told: min(told, 3 * REST)  # stops when loops have begun
    assert "stood still for" in refused(later)
    slow = World(update=4.0)
    assert "updated 2 times in 10 s at rest" in refused(slow)


@pytest.mark.parametrize("when", [1.0, 4.0])
def test_a_counter_that_goes_back(when: float) -> None:
    world = World()
    world.fault = lambda told: told - 50.0 if world.now > when else told
    assert "went back by" in refused(world)


def test_a_counter_that_jumps() -> None:
    world = World()
    world.fault = lambda told: told + 1000.0 if world.now > 4.0 else told
    assert "jumped: 1" in refused(world)


def test_a_counter_that_tells_less_than_rest() -> None:
    world = World()
    world.fault = _slowed(world, 2.5)
    assert "W of rest" in refused(world)


def _slowed(world: World, began: float) -> Callable[[float], float]:
    """From a moment on the counter counts a thousandth."""
    at: list[float] = []

    def told(value: float) -> float:
        if world.now < began:
            return value
        at.append(value)
        return at[0] + (value - at[0]) / 1000

    return told


def test_a_counter_that_fails_while_it_is_read() -> None:
    world = World()

    def failing(told: float) -> float:
        if world.now > 4:
            raise CounterError("gone")
        return told

    world.fault = failing
    assert refused(world) == "gone"


def test_what_an_execution_raises_is_not_the_counters() -> None:
    world = World()

    def broken() -> None:
        raise RuntimeError("planted")

    with pytest.raises(RuntimeError, match="planted"):
        world.meter().energy([Load(broken, world.finish, world.announce)])


@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"absent": "none", "seconds": 1.0},
        {"joules": {"value": 1, "low": 1, "high": 1}, "domain": "d"},
        {"absent": ""},
    ],
)
def test_a_record_has_a_whole_measurement_or_a_reason(fields: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"absent"):
        Energy.model_validate(fields)


def test_energy_of_a_record_is_above_nothing() -> None:
    assert Energy(absent="none").watts is None
    world = World()
    fields = world.meter().energy([world.load()]).model_dump(exclude_none=True)
    assert Energy.model_validate(fields).joules
    fields["joules"]["low"] = 0.0
    with pytest.raises(ValueError, match="above 0"):
        Energy.model_validate(fields)
