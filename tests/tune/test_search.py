"""The order of measuring: whole where a space is small, seeds first, nothing twice, by the seed alone."""

from __future__ import annotations

import math

import numpy as np
import pytest

from perfport.tune import search as searching
from perfport.tune.search import Search, expected_improvement, levelled
from perfport.tune.space import Config, Space, name_of

SMALL = Space({"a": [1, 2, 3], "b": [1, 2]})
LARGE = Space({name: list(range(8)) for name in "abcde"})


def cost(config: Config) -> float:
    """Logarithm of a time with one best configuration, of which each tunable has a part."""
    return sum(0.2 * abs(value - 3) for value in config.values())


def visits(search: Search, most: int) -> list[Config]:
    seen = []
    while len(seen) < most and (config := search.ask()) is not None:
        seen.append(config)
        search.tell(config, cost(config))
    return seen


def test_a_small_space_is_measured_whole_seeds_first() -> None:
    seed = {"a": 3, "b": 2}
    seen = visits(Search(SMALL, [seed, seed], 1), 99)
    assert seen[0] == seed and sorted(map(name_of, seen)) == sorted(map(name_of, SMALL.every()))


def test_after_the_seeds_come_neighbours_of_theirs_and_some_at_random() -> None:
    seed = dict.fromkeys("abcde", 3)
    seen = visits(Search(LARGE, [seed], 1), 9)
    apart = [sum(value != 3 for value in config.values()) for config in seen]
    assert apart[:5] == [0, 1, 1, 1, 1] and max(apart[5:]) > 1


def test_no_configuration_comes_twice_and_the_seed_decides() -> None:
    one, again, other = (visits(Search(LARGE, [], seed), 25) for seed in (1, 1, 2))
    assert len(set(map(name_of, one))) == 25 and one == again != other


def test_a_search_that_is_told_what_is_known_goes_on_as_if_it_had_never_ended() -> None:
    whole = visits(Search(LARGE, [], 1), 20)
    resumed = Search(LARGE, [], 1)
    for config in whole[:12]:
        resumed.tell(config, cost(config))
    later = visits(resumed, 8)
    assert not set(map(name_of, later)) & set(map(name_of, whole[:12]))


def test_it_finds_what_chance_does_not() -> None:
    found = min(cost(config) for config in visits(Search(LARGE, [], 1), 100))
    drawn = np.median([min(map(cost, LARGE.draw(np.random.default_rng(s), 100))) for s in range(9)])
    assert found <= 0.2 < drawn


def test_failures_are_avoided() -> None:
    """Half of the space has no result: after some dozens of trials, less than a third of them goes there."""
    search, failed = Search(LARGE, [], 1), []
    for _ in range(90):
        config = search.ask()
        assert config
        bad = config["a"] >= 4
        failed.append(bad)
        search.tell(config, None if bad else cost(config))
    assert sum(failed[45:]) < 15


def test_where_everything_fails_it_still_goes_on() -> None:
    search = Search(LARGE, [], 1)
    for _ in range(30):
        config = search.ask()
        assert config
        search.tell(config, None)


def test_it_ends_when_a_large_space_is_used_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(searching, "SMALL", 5)
    assert len(visits(Search(Space({"a": list(range(30))}), [], 1), 99)) == 30


def test_the_bad_half_is_as_bad_as_its_best_and_so_is_what_failed() -> None:
    assert levelled([0.0, 1.0, 2.0, None, 9.0]).tolist() == [0.0, 1.0, 2.0, 2.0, 2.0]
    assert levelled([None]).tolist() == pytest.approx([math.log(1.5)])


def test_improvement_grows_with_uncertainty_and_with_a_lower_mean() -> None:
    sure, unsure, low = expected_improvement(np.array([1.0, 1.0, 0.5]), np.array([0.0, 1.0, 1.0]), 1.0)
    assert sure == pytest.approx(0, abs=1e-8) and 0.39 < unsure < 0.40 and low > unsure
