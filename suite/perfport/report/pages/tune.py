"""What tuning found: the summary of a search, and the page of what searches tell of the spaces."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

from matplotlib.figure import Figure
from tabulate import tabulate

from ...model.arithmetic import geometric_mean
from ...model.record import Interval
from ...model.untrusted import line, slug
from ...tune.anatomy import NEAR, Anatomy, Found
from ...tune.log import Result
from ...tune.tune import Done
from ..parts.markdown import NONE, code, join, middle, table, text
from ..parts.plots import COLOURS, GREY, Plot, image, plain_numbers, style, svg
from ..parts.quantities import percent
from ..parts.view import View

#: Tunables that a cell names.
MOST_NAMED = 4
READING = (
    "All numbers are measured by the searches themselves; the gains by fresh workers afterwards, with 95 % intervals. "
    "Times are over that of the best configuration of the row. A search that did not try the whole space has looked "
    "more where it is good, so shares are of what was tried. A configuration that was dropped after its first samples "
    "has the time that these gave. *Importance* is the share of the variance of the logarithm of the time that a "
    "forest no longer explains when the tunable is permuted."
)
MEANS = (
    "A profile has what beats the code's defaults beyond the interval of the gain; the geometric mean takes 1 for the "
    "other variants, and its ends are those of the gains' ends."
)
HELD_OUT = (
    "At sizes that none of these searches had used before: how many times as long a variant takes by the parameters "
    "that were its defaults then (the profile's, or the code's where it had none) as by the best that is found there, "
    "and by the code's, by the number of sizes at which it had been searched."
)
AGAIN = (
    "Each search of a variant has a final of its own, beside the code's defaults: how far apart the gains are that "
    "they led to, 1 where nothing was written."
)


def summary(done: Done) -> str:
    """Return the results of a search as text, with what was written."""
    rows = [
        {
            "device": line(each.device),
            "variant": line(each.variant),
            "tried": f"{each.tried} of {each.of:,}",
            "gain": _interval(each.gain) if each.gain else "",
            "outcome": "written" if each.parameters else line(each.reason, 90),
        }
        for each in done.results
    ]
    told = [f"{path}: {len(names)} variants written" for path, names in done.written.items()]
    return "\n".join([tabulate(rows, headers="keys"), "", *told, f"search: {done.folder}"])


def _interval(value: Interval) -> str:
    return f"{value.value:.3f} ({value.low:.3f}–{value.high:.3f})"


def view(searches: Sequence[Found]) -> View:
    """Return what searches tell: gains, and for each device the spaces with a plot of their distributions."""
    blocks, plots = ["# What tuning tells", READING, "## Searches", searched(searches)], []
    if ends := ended(searches):
        blocks += ["## Gains over the code's defaults", MEANS, means(ends), gains(ends)]
    if again := repeated(ends):
        blocks += ["## Searched with several seeds", AGAIN, again]
    rows = []
    for place, own in by_place(searches).items():
        plot = distributions(place, own)
        plots.append(plot)
        blocks += [f"## The spaces on {text(place)}", spaces(own), lost(held_out(searches, place)), *image(plot)]
        rows += [_row(place, seed, each) for seed, each in own]
    if not rows:
        blocks.append("No configuration was timed.")
    return View("What tuning tells", join(blocks), rows, plots)


@dataclass(frozen=True)
class Ended:
    """How the search of a variant ended: on which chip (``place``), by which seed, with which result."""

    place: str
    seed: str
    result: Result

    @property
    def gain(self) -> Interval:
        """The gain over the code's defaults of what the profile has: 1 where it has nothing."""
        if self.result.parameters and self.result.gain:
            return self.result.gain
        return Interval(value=1.0, low=1.0, high=1.0)


def ended(searches: Sequence[Found]) -> list[Ended]:
    """Return how the searches of all variants ended."""
    return [Ended(_place(search, each.device), _seed(search), each) for search in searches for each in search.results]


def _place(search: Found, device: str) -> str:
    """The chip and the device's id: ids alone are those of many machines."""
    known = search.search.devices.get(device, {}) if search.search else {}
    chip = known.get("chip") or known.get("name")
    return line(f"{chip}, {device}" if chip else device, 200)


def _seed(search: Found) -> str:
    return str(search.search.seed) if search.search else NONE


def by_place(searches: Sequence[Found]) -> dict[str, list[tuple[str, Anatomy]]]:
    """Return the spaces of each device of each chip, with the seeds of their searches, in the order of their names."""
    held: dict[str, list[tuple[str, Anatomy]]] = {}
    for search in searches:
        for each in search.anatomies:
            held.setdefault(_place(search, each.device), []).append((_seed(search), each))
    return {place: sorted(held[place], key=lambda own: (own[1].variant, own[1].preset)) for place in sorted(held)}


def searched(searches: Sequence[Found]) -> str:
    """Return a table of the searches: on which chips, by which driver, code and seed."""
    rows = [
        [
            code(found.folder.name), text(_place(found, device)), text(known.get("driver") or NONE),
            text(found.search.cache or NONE), str(found.search.seed), text(found.search.started),
            code(found.search.commit[:12]),
        ]
        for found in searches if found.search for device, known in found.search.devices.items()
    ]  # fmt: skip
    return table(["folder", "device", "driver", "cache", "seed", "started", "commit"], rows, "lllllll")


def means(ends: Sequence[Ended]) -> str:
    """Return a table of the mean gain of each workload's variants, by device and seed."""
    groups: dict[tuple[str, str, str], list[Ended]] = {}
    for each in ends:
        groups.setdefault((each.place, each.seed, each.result.variant.partition("/")[0]), []).append(each)
    rows = []
    for (place, seed, workload), own in sorted(groups.items()):
        most = max(own, key=lambda each: each.gain.value)
        won = [each for each in own if each.gain.value != 1]
        mean = Interval(**{
            end: geometric_mean([getattr(each.gain, end) for each in own]) for end in ("value", "low", "high")
        })  # fmt: skip
        largest = f"{most.gain.value:.2f} {code(most.result.variant.partition('/')[2])}" if won else NONE
        rows.append([text(place), seed, code(workload), str(len(own)), str(len(won)), _interval(mean), largest])
    return table(
        ["device", "seed", "workload", "variants and sizes", "with a gain", "geometric mean", "largest"],
        rows,
        "lllrrrl",
    )


def gains(ends: Sequence[Ended]) -> str:
    """Return a table of how searches ended."""
    rows = [
        [
            text(each.place), code(each.result.variant), text(", ".join(each.result.presets)),
            each.seed, f"{each.result.tried} of {each.result.of:,}",
            _interval(each.result.gain) if each.result.gain else NONE,
            percent(each.result.share) if each.result.share else NONE,
            _settings(each.result.parameters) if each.result.parameters else text(each.result.reason, 120),
        ]
        for each in sorted(ends, key=lambda each: (each.place, each.result.variant, each.seed))
    ]  # fmt: skip
    headers = [
        "device",
        "variant",
        "sizes",
        "seed",
        "tried",
        "gain",
        "share of problem bound",
        "parameters, or why there are none",
    ]
    return table(headers, rows, "llllrrrl")


def repeated(ends: Sequence[Ended]) -> str:
    """Return a table of the variants that were searched with several seeds; empty where none was."""
    held: dict[tuple[str, str, tuple[str, ...]], dict[str, Ended]] = {}
    for each in ends:
        key = each.place, each.result.variant, tuple(sorted(each.result.presets))
        held.setdefault(key, {})[each.seed] = each
    rows = []
    for (place, variant, presets), by_seed in sorted(held.items()):
        if len(by_seed) > 1:
            own = [each.gain.value for each in by_seed.values()]
            told = "; ".join(f"{each.gain.value:.3f} (seed {seed})" for seed, each in by_seed.items())
            rows.append([text(place), code(variant), text(", ".join(presets)), told, percent(max(own) / min(own) - 1)])
    return table(["device", "variant", "sizes", "gains", "apart"], rows, "llllr") if rows else ""


def _settings(values: object) -> str:
    assert isinstance(values, dict)
    return text(", ".join(f"{name}={value}" for name, value in values.items()), 200)


def spaces(own: Sequence[tuple[str, Anatomy]]) -> str:
    """Return a table of the spaces of one device; each with the seed of its search."""
    rows = [[code(each.variant), text(each.preset), seed, *_numbers(each), _importance(each)] for seed, each in own]
    near = f"within {NEAR - 1:.0%} of the best"
    headers = [
        "variant",
        "size",
        "seed",
        "tried",
        "without a result",
        near,
        "median",
        "worst",
        "defaults",
        "profile",
        "importance",
    ]
    return table(headers, rows, "lllrrrrrrrl")


@dataclass(frozen=True)
class HeldOut:
    """A variant at a size that no search before had used: what it loses by its parameters, and by the code's.

    ``known``: at how many other sizes it had been searched.
    """

    variant: str
    preset: str
    loss: float | None
    code: float | None
    known: int


def held_out(searches: Sequence[Found], place: str) -> list[HeldOut]:
    """Return the variants of a device that were searched at a size of their own after they had been at another."""
    own = [
        (search, result, preset)
        for search in searches if search.search for result in search.results if _place(search, result.device) == place
        for preset in result.presets
    ]  # fmt: skip
    found = []
    for search, result, preset in own:
        before = {
            at for other, known, at in own if known.variant == result.variant and _begun(other) < _begun(search)
        }  # fmt: skip
        if before and preset not in before and [*result.presets] == [preset]:
            gain, of = _over_code(result), _anatomy(search, result)
            loss = _loss(of, result, gain) if of else None
            found.append(HeldOut(result.variant, preset, loss, gain, len(before)))
    return sorted(found, key=lambda each: (each.variant, each.preset))


def _begun(search: Found) -> str:
    return search.search.started if search.search else ""


def _anatomy(search: Found, of: Result) -> Anatomy | None:
    """What a search of one size tells of the space; nothing where no configuration was timed."""
    known = (each for each in search.anatomies if (each.device, each.variant) == (of.device, of.variant))
    return next((each for each in known if [each.preset] == [*of.presets]), None)


def _over_code(result: Result) -> float | None:
    if result.answer is None:
        return None
    return result.gain.value if result.gain and result.parameters else 1.0


def _loss(of: Anatomy, result: Result, gain: float | None) -> float | None:
    """By fresh workers; in a log that is older than that, by the search's own times and the gain by fresh workers."""
    if result.over_profile:
        return result.over_profile.value
    return of.held * gain if of.held and gain else None


def lost(out: Sequence[HeldOut]) -> str:
    """Return what parameters lose at sizes that were held out; empty where there are none."""
    if not any(each.loss for each in out):
        return ""
    blocks = [HELD_OUT, _medians(out)]
    most = sorted((each for each in out if each.loss and each.loss > NEAR), key=lambda each: -(each.loss or 0.0))
    rows = [
        [
            code(each.variant), text(each.preset), str(each.known), f"{each.loss:.2f}",
            f"{each.code:.2f}" if each.code else NONE,
        ]
        for each in most
    ]  # fmt: skip
    headers = ["more is lost by", "size", "sizes before", "by what was its default", "by the code's defaults"]
    return join([*blocks, table(headers, rows, "llrrr")] if rows else blocks)


def _medians(out: Sequence[HeldOut]) -> str:
    """Return a table of what is lost, by the number of sizes that were known before."""
    rows = []
    for known in sorted({each.known for each in out}):
        own = [each for each in out if each.known == known]
        losses = [each.loss for each in own if each.loss]
        by_code = [each.code or 1.0 for each in own if each.loss]
        rows.append([
            str(known), str(len(losses)), f"{median(losses):.3f}" if losses else NONE,
            str(sum(loss <= NEAR for loss in losses)), f"{median(by_code):.3f}" if losses else NONE,
            str(len(own) - len(losses)),
        ])  # fmt: skip
    headers = [
        "sizes before", "variants", "by what was its default: median", f"within {NEAR - 1:.0%}",
        "by the code's defaults: median", "no answer",
    ]  # fmt: skip
    return table(headers, rows, "rrrrrr")


def _numbers(each: Anatomy) -> list[str]:
    failed = sum(each.failed.values())
    default = f"{each.default:.2f}" if each.default else NONE
    profile = f"{each.profile:.2f}" if each.profile else ""
    tried = f"{each.tried} of {each.size:,}"
    spread = [percent(each.near), f"{each.median:.2f}", f"{each.relative[-1]:.1f}"]
    return [tried, str(failed or NONE), *spread, default, profile]


def _importance(each: Anatomy) -> str:
    named = list(each.importance.items())[:MOST_NAMED]
    return ", ".join(f"{code(name, 40)} {value:.2f}" for name, value in named) or NONE


def distributions(place: str, own: Sequence[tuple[str, Anatomy]]) -> Plot:
    """Draw the share of the configurations of each space that is within a factor of the best."""
    with style():
        figure = Figure(figsize=(8.0, 1.2 + 0.34 * len(own)), layout="constrained")
        axes = figure.add_subplot()
        for y, (_, each) in enumerate(own):
            axes.scatter(each.relative, [y] * len(each.relative), s=9, color=COLOURS["rung"], alpha=0.35, linewidths=0)
            if each.default:
                axes.scatter([each.default], [y], s=50, marker="|", color=COLOURS["control"], linewidths=2)
        axes.axvline(NEAR, color=GREY, linewidth=0.8, linestyle=":")
        axes.set_xscale("log")
        plain_numbers(axes.xaxis)
        axes.set_ylim(len(own) - 0.5, -0.5)
        axes.set_yticks(
            range(len(own)),
            [middle(f"{each.variant} ({each.preset}, seed {seed})", 52) for seed, each in own],
            fontsize=8,
        )
        axes.set_xlabel("time over that of the best configuration")
        content = svg(figure)
    caption = (
        "Every configuration that was timed, by its time over that of the best (measured). "
        f"Dotted: {NEAR:g}; bars: the code's defaults."
    )
    return Plot(f"{slug('spaces', place)}.svg", content, f"Spaces of variants on {place}", caption)


def _row(place: str, seed: str, each: Anatomy) -> dict[str, object]:
    return {
        "device": place, "seed": seed, "variant": each.variant, "size": each.preset, "tried": each.tried,
        "of": each.size,
        "timed": len(each.relative), "not timed": each.hopeless, "without a result": sum(each.failed.values()),
        "near": each.near, "median": each.median, "worst": each.relative[-1], "default": each.default,
        "profile": each.profile,
        **{f"importance {name}": value for name, value in each.importance.items()},
    }  # fmt: skip
