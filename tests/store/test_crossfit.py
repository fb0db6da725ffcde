"""The ratio of the best of several: what equal variants amount to, and what is left as it was."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
import report_data as data

from perfport.measure.intervals import Verdict, summarise
from perfport.model.record import Record
from perfport.store.crossfit import compare_best
from perfport.store.ratios import compare, time_of

MODEL = data.record("model", 1.0, clock="span")


def measured(name: str, times: Sequence[float], workers: int = 1, **change: Any) -> Record:
    """Return a record of these times, taken by so many workers in turn."""
    spans = [float(time) for time in times]
    owner = [i * workers // len(spans) for i in range(len(spans))] if workers > 1 else []
    assert MODEL.timing
    timing = MODEL.timing.model_copy(
        update={
            "span": spans, "rounds": list(range(len(spans))), "workers": owner,
            "summary": {"span": summarise(spans, owner)},
        }
    )  # fmt: skip
    identity = MODEL.identity.model_copy(update={"variant": name})
    return MODEL.model_copy(update={"key": name, "identity": identity, "timing": timing, **change})


def equal(rng: np.random.Generator, number: int, n: int, rho: float, workers: int) -> list[Record]:
    """Draw equal variants with 1 % of noise, autocorrelated within each worker."""
    steps = rng.standard_normal((number, workers, n))
    noise = steps.copy()
    for i in range(1, n):
        noise[..., i] = rho * noise[..., i - 1] + np.sqrt(1 - rho**2) * steps[..., i]
    times = np.exp(0.01 * noise).reshape(number, -1)
    return [measured(str(i), times[i], workers) for i in range(number)]


@pytest.mark.parametrize(
    ("variants", "peers", "n", "rho", "workers"), [(20, 1, 15, 0.0, 1), (20, 4, 15, 0.3, 1), (20, 1, 9, 0.0, 3)]
)
def test_the_best_of_equal_variants_is_rarely_called_different(
    variants: int, peers: int, n: int, rho: float, workers: int
) -> None:
    rng = np.random.default_rng(n)
    called, honest, lucky = 0, [], []
    for _ in range(120):
        drawn = equal(rng, variants + peers, n, rho, workers)
        found = compare_best(drawn[:peers], drawn[peers:])
        best = min(drawn[peers:], key=time_of)
        plain = compare(drawn[0], best)
        assert found and plain
        called += found.verdict in (Verdict.FASTER, Verdict.SLOWER)
        honest.append(np.log(found.ratio.value))
        lucky.append(np.log(plain.ratio.value))
    assert called <= 0.05 * 120
    assert abs(np.mean(honest)) < 3 * np.std(honest) / np.sqrt(120), "the ratio is not biased"
    assert np.mean(lucky) > 10 * np.std(lucky) / np.sqrt(120), "that of the fastest by the same samples is"


@pytest.mark.parametrize("workers", [1, 3])
def test_where_all_samples_choose_alike_the_ratio_is_that_of_the_two_records(workers: int) -> None:
    rng = np.random.default_rng(1)
    peers = [measured(f"peer {i}", level * rng.normal(1, 0.01, 18), workers) for i, level in enumerate((3.0, 2.0))]
    variants = [measured(f"{i}", level * rng.normal(1, 0.01, 18), workers) for i, level in enumerate((1.5, 1.0, 1.2))]
    assert compare_best(peers, variants) == compare(peers[1], variants[1])
    assert compare_best(peers[:1], variants[:1]) == compare(peers[0], variants[0])


def test_each_half_is_of_what_the_other_half_chooses() -> None:
    """One is fast early, the other late: the half in which each is fast chooses it for the half in which it is not."""
    early, late = measured("early", [1.0] * 8 + [2.0] * 8), measured("late", [2.1] * 8 + [1.1] * 8)
    found = compare_best([measured("peer", [4.0] * 16)], [early, late])
    assert found and found.ratio.low < 1.91 < 1.99 < found.ratio.high
    assert found.ratio.value == pytest.approx((4 / 2.1 + 4 / 2.0) / 2)


def test_what_a_process_is_lucky_with_is_chosen_by_other_processes() -> None:
    """Each of three equal variants is fast in a process of its own: chosen by the others, it is not fast in them."""
    variants = [measured(f"{i}", np.where(np.arange(27) // 9 == i, 0.9, 1.0).tolist(), 3) for i in range(3)]
    found = compare_best([measured("peer", [1.0] * 27, 3)], variants)
    assert found and (found.ratio.low, found.ratio.high) == (1.0, 1.0)


def test_halves_are_of_rounds_in_which_all_took_part() -> None:
    """A case that was finished early has samples in both halves."""
    short, long = measured("short", [1.0] * 8), measured("long", [1.2] * 60)
    peer = measured("peer", [2.0] * 60)
    assert compare_best([peer], [short, long]) == compare(peer, short)


def test_records_of_several_runs_are_split_and_never_paired() -> None:
    trend = np.linspace(1.0, 1.3, 16)
    peer, first = measured("peer", 2 * trend), measured("first", trend)
    second = measured("second", 1.5 * trend, run="another")
    found = compare_best([peer], [first, second])
    beside = compare_best([peer], [first, measured("second", 1.5 * trend)])
    assert found and beside and beside.ratio.high == pytest.approx(2.0) and found.ratio.high > 2.1
    assert found.ratio == compare_best([peer], [first.model_copy(update={"run": "another"}), second]).ratio  # type: ignore[union-attr]


def test_what_cannot_be_split_is_compared_as_it_is() -> None:
    lone = [measured("a", [1.0]), measured("b", [1.1])]
    assert compare_best([measured("peer", [2.0])], lone) is not None
    peer, rival = data.record("peer", 0.02), data.record("rival", 0.03)
    best = data.record("a", 0.01)
    assert best.timing
    best.timing.rounds = []
    assert compare_best([peer, rival], [best]) == compare(peer, best)
    other = data.record("a", 0.01, inputs={"a": 9})
    assert compare_best([peer, rival], [other]) is None
