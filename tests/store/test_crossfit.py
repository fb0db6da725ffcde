"""The ratio of the best of several: what equal variants amount to, and what is left as it was."""

from __future__ import annotations

import numpy as np
import pytest
import report_data as data
from equal_variants import equal, measured

from perfport.measure.intervals import Verdict
from perfport.store.crossfit import compare_best
from perfport.store.ratios import compare, time_of


@pytest.mark.parametrize("workers", [2, 3])
def test_where_workers_disagree_the_interval_is_that_of_correlated_parts(workers: int) -> None:
    """Three workers: 1 / 3 + 1 / 2 in place of 1 / 3 of the variance; two: 1 / 2 + 1 in place of 1 / 2."""
    between = workers - 2
    early = measured("early", [1.0] * 3 + [1.0] * 3 * between + [2.0] * 3, workers)
    late = measured("late", [2.1] * 3 + [1.1] * 3 * between + [1.1] * 3, workers)
    peer = measured("peer", [4.0, 4.2, 4.4] * workers, workers)
    found = compare_best([peer], [early, late])
    chosen = measured("chosen", [2.1] * 3 + [1.0] * 3 * between + [2.0] * 3, workers)
    plain = compare(peer, chosen)
    assert found and plain and found.ratio.value == plain.ratio.value
    factor = np.sqrt(1 + workers / (workers - 1))
    widths = [np.log(each.ratio.high / each.ratio.value) for each in (found, plain)]
    assert widths[0] == pytest.approx(factor * widths[1])
    widths = [np.log(each.ratio.value / each.ratio.low) for each in (found, plain)]
    assert widths[0] == pytest.approx(factor * widths[1])


@pytest.mark.parametrize("workers", [1, 3])
def test_where_all_samples_choose_alike_the_ratio_is_that_of_the_two_records(workers: int) -> None:
    rng = np.random.default_rng(1)
    peers = [measured(f"peer {i}", level * rng.normal(1, 0.01, 18), workers) for i, level in enumerate((3.0, 2.0))]
    variants = [measured(f"{i}", level * rng.normal(1, 0.01, 18), workers) for i, level in enumerate((1.5, 1.0, 1.2))]
    assert compare_best(peers, variants) == compare(peers[1], variants[1])
    assert compare_best(peers[:1], variants[:1]) == compare(peers[0], variants[0])
    assert compare_best(peers, variants[:2]) == compare(peers[1], variants[1])


def test_each_half_is_of_what_the_other_half_chooses() -> None:
    """One is fast early, the other late: the half in which each is fast chooses it for the half in which it is not."""
    early, late = measured("early", [1.0] * 8 + [2.0] * 8), measured("late", [2.1] * 8 + [1.1] * 8)
    peer = measured("peer", [4.0] * 16)
    found = compare_best([peer], [early, late])
    assert found and found.ratio.low < 1.91 < 1.99 < found.ratio.high
    assert found.ratio.value == pytest.approx((4 / 2.1 + 4 / 2.0) / 2)
    for record in (peer, early, late):
        assert record.timing
        record.timing.workers = [0] * 16
    assert compare_best([peer], [early, late]) == found, "one worker, by its number"


def test_of_an_odd_number_of_rounds_the_later_half_has_one_more() -> None:
    """Each is fast in its own half alone: what stands for both never is, and nothing else comes in."""
    early, late = measured("early", [1.0] * 3 + [2.0] * 4), measured("late", [2.0] * 3 + [1.0] * 4)
    found = compare_best([measured("peer", [4.0] * 7)], [early, late])
    assert found and (found.ratio.low, found.ratio.value, found.ratio.high) == (2.0, 2.0, 2.0)


def test_records_by_different_numbers_of_workers_are_split_by_as_many_as_all_have() -> None:
    """The third worker of one belongs to the part of the first."""
    two = measured("two", [1.0] * 3 + [3.0] * 3, 2)
    three = measured("three", [9.0] * 4 + [1.5] * 4 + [2.0] * 4, 3, run="another")
    peer = measured("peer", [6.0] * 12, 3, run="another")
    found = compare_best([peer], [two, three])
    assert found and found.ratio.value == pytest.approx(6 / 3.0), "three's of 9.0 and 2.0, and two's of 3.0"
    for record in (two, three, peer):
        assert record.timing
        record.timing.workers = [4 + 3 * worker for worker in record.timing.workers]
    assert compare_best([peer], [two, three]) == found, "whatever their numbers"


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


def test_what_is_chosen_of_several_runs_is_not_paired() -> None:
    """Rounds are paired where what is chosen was measured in one run, whatever other runs were to choose from."""
    trend = np.linspace(1.0, 1.3, 16)
    peer, first, slow = measured("peer", 2 * trend), measured("first", trend), measured("slow", 1.5 * trend)
    beside = compare_best([peer], [first, slow])
    other = compare_best([peer], [first, slow.model_copy(update={"run": "another"})])
    assert beside and other and beside.ratio == other.ratio and beside.ratio.high == pytest.approx(2.0)
    late = measured("late", np.where(np.arange(16) < 8, 1.01, 0.99) * trend)
    both, apart = (compare_best([peer], [first, each]) for each in (late, late.model_copy(update={"run": "another"})))
    assert both and apart and both.ratio.high < 2.05 and apart.ratio.high > 2.1
    assert apart.ratio == compare_best([peer], [first.model_copy(update={"run": "another"}), late]).ratio  # type: ignore[union-attr]


def test_the_same_case_in_two_runs_is_two_records() -> None:
    """Keys are equal in both runs: each side's samples are split as its own."""
    rng = np.random.default_rng(3)
    before = [measured(str(i), rng.normal(2, 0.01, 18), 3, run="before") for i in range(2)]
    after = [measured(str(i), rng.normal(1, 0.01, 24), 3, run="after") for i in range(2)]
    found = compare_best(before, after)
    assert found and found.ratio.value == pytest.approx(2, rel=0.02) and found.verdict is Verdict.FASTER


def test_what_cannot_be_split_is_ambiguous() -> None:
    """Of two records nothing is chosen: their ratio is as it is."""
    lone = [measured("a", [1.1]), measured("b", [1.0])]
    one = compare_best([measured("peer", [2.0])], lone)
    assert one and (one.ratio.value, one.verdict) == (2.0, Verdict.AMBIGUOUS), "that of the fastest"
    some = [measured("a", [1.1] * 12), measured("b", [1.0])]
    assert (one := compare_best([measured("peer", [2.0] * 12)], some)) and one.ratio.value == 2.0
    two = measured("two", [1.0, 3.0])
    assert (one := compare_best([measured("peer", [2.0] * 12)], [some[0], two])), "two rounds are two halves"
    assert one.ratio.value == pytest.approx(2 / np.median([1.1, 3.0])) and one.verdict is Verdict.AMBIGUOUS
    peer, rival = data.record("peer", 0.02), data.record("rival", 0.03)
    best = data.record("a", 0.01)
    assert best.timing
    best.timing.rounds = []
    found, plain = compare_best([peer, rival], [best]), compare(peer, best)
    assert found and plain and found.ratio == plain.ratio
    assert (plain.verdict, found.verdict) == (Verdict.FASTER, Verdict.AMBIGUOUS)
    assert compare_best([peer], [best]) == plain
    other = data.record("a", 0.01, inputs={"a": 9})
    assert compare_best([peer, rival], [other]) is None


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


@pytest.mark.parametrize("workers", [3, 5])
def test_workers_that_differ_more_than_their_samples_do_not_make_the_best_of_equal_variants_different(
    workers: int,
) -> None:
    rng = np.random.default_rng(workers)
    ratios = []
    for _ in range(200):
        drawn = equal(rng, 24, 7, 0.0, workers, effect=10.0)
        found = compare_best(drawn[:4], drawn[4:])
        assert found
        ratios.append(found.ratio)
    assert sum(not ratio.low <= 1 <= ratio.high for ratio in ratios) <= 18, "17 of 200 are as likely as 1 in 50 at 5 %"


def test_a_side_of_which_one_worker_took_a_part_is_not_split_by_workers() -> None:
    """Records of two campaigns: halves of two records, of which one names the workers of its samples."""
    early = measured("early", [1.0] * 9 + [2.0] * 9, 3)
    late = measured("late", [2.0] * 9 + [1.0] * 9, 1, run="another")
    assert early.timing and late.timing and early.timing.workers and not late.timing.workers
    compared = compare_best([measured("peer", [4.0] * 18, 1, run="another")], [early, late])
    assert compared and compared.ratio.value == 2.0
