"""Derives the verdict of every claim again, from the raw JSON and YAML alone: nothing of the suite is imported.

    python rederive_claims.py RESULTS CLAIMS_FOLDER    prints {"workload/claim/device/chip/host": verdict} as JSON

RESULTS holds run folders; CLAIMS_FOLDER holds WORKLOAD/claims.yaml.
"""

from __future__ import annotations

import json
import math
import statistics
import sys
from pathlib import Path
from typing import Any

import yaml
from scipy.stats import t as student


def load(results: Path) -> dict[str, list[dict[str, Any]]]:
    """Records by device, chip and host, of each identity the latest that is ok, else contended, else the latest."""
    order = {"ok": 2, "contended": 1}
    latest: dict[str, dict[str, Any]] = {}
    place: dict[str, str] = {}
    for file in sorted(results.glob("*/records.jsonl")):
        environment = json.loads((file.parent / "environment.json").read_text())
        devices, host = environment["devices"], environment["host"]
        machine = [host["cpu"], host["cores"], round(host["memory_bytes"] / 2**30)]
        records = [json.loads(line) for line in file.read_text().splitlines()]
        used = {device for record in records for device in record["identity"]["devices"]}
        for record in records:  # the only device of its platform in a run is number 0, whatever it was there
            places = [device.rpartition(":") for device in record["identity"]["devices"]]
            alone = [sum(other.startswith(place[0]) for other in used) == 1 for place in places]
            record["identity"]["devices"] = [
                f"{p[0]}:{0 if one else p[2]}" for p, one in zip(places, alone, strict=True)
            ]
            devices |= dict(zip(record["identity"]["devices"], (devices["".join(p)] for p in places), strict=True))
        for record in records:
            who = record["identity"]
            chips = [devices[d]["chip"] for d in who["devices"]]
            what = [who["workload"], who["problem"], who["variant"], who["parameters"], who["tunables"]]
            who["inputs"] = who.get("inputs") or {"a": record["seed"]}
            what += [who.get("profile"), who["precision"], who["inputs"], who["devices"], chips, machine]
            key = json.dumps(what, sort_keys=True)
            place[key] = f"{' + '.join(who['devices'])}/{' + '.join(dict.fromkeys(chips))}/{machine}"
            record["kind"] = devices[who["devices"][0]]["kind"]
            record["rank"] = (order.get(record["status"], 0), record["time"])
            if key not in latest or latest[key]["rank"] <= record["rank"]:
                latest[key] = record
    found: dict[str, list[dict[str, Any]]] = {}
    for key, record in latest.items():
        found.setdefault(place[key], []).append(record)
    return {device: on_last_inputs(records) for device, records in found.items()}


def on_last_inputs(records: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Of each setting the records on the inputs that its latest result is on."""
    settings: dict[str, list[dict[str, Any]]] = {}
    for record in records:
        who = record["identity"]
        setting = [who[name] for name in ("workload", "problem", "parameters", "precision")]
        settings.setdefault(json.dumps(setting, sort_keys=True), []).append(record)
    last = [(held, max(held, key=lambda r: r["rank"])["identity"]["inputs"]) for held in settings.values()]
    return [record for held, inputs in last for record in held if record["identity"]["inputs"] == inputs]


def fits(wanted: Any, value: Any) -> bool:
    """Whether a parameter is what a selector asks for."""
    if isinstance(wanted, dict):
        number = isinstance(value, (int, float))
        if not number or ("no_multiple_of" in wanted and value % wanted["no_multiple_of"] == 0):
            return False
        return wanted.get("min", -math.inf) <= value <= wanted.get("max", math.inf)
    return any(fits(one, value) for one in wanted) if isinstance(wanted, list) else value == wanted


def independent_interval(values: list[float]) -> tuple[float, float, float]:
    """Median and the order statistics around it that miss it with 5 % probability at most."""
    values, n = sorted(values), len(values)
    rank, below = 0, 0.0
    for k in range(n // 2):
        below += math.comb(n, k) / 2**n
        if 2 * below <= 0.05:
            rank = k
    return statistics.median(values), values[rank], values[n - 1 - rank]


def inefficiency(parts: list[list[float]]) -> float:
    """1 + twice the sum of autocorrelations of each worker's ranks, by two estimates of which the larger counts."""
    n = sum(map(len, parts)) / len(parts)
    if n < 6:
        return 1.0
    sums = [0.0] * max(map(len, parts))
    for part in parts:
        ranks = [sum(v < x for v in part) + (part.count(x) - len(part)) / 2 for x in part]
        for lag in range(len(part)):
            sums[lag] += sum(ranks[i] * ranks[i + lag] for i in range(len(part) - lag))
    if not sums[0]:
        return 1.0
    rho = [each / sums[0] for each in sums]
    first = (n * rho[1] + 1) / (n - 4)
    total, lag = 0.0, 0
    while lag + 1 < len(rho) and rho[lag] + rho[lag + 1] > 0:
        total += rho[lag] + rho[lag + 1]
        lag += 2
    return min(n, max(1.0, n if first >= 1 else (1 + first) / (1 - first), 2 * total - 1))


def median_interval(values: list[float], workers: list[int]) -> tuple[float, float, float]:
    """Median and its interval, widened by how far samples that follow each other are alike and workers are apart."""
    median, low, high = independent_interval(values)
    owner = workers if len(workers) == len(values) else [0] * len(values)
    parts = [[v for v, w in zip(values, owner, strict=True) if w == worker] for worker in dict.fromkeys(owner)]
    factor = math.sqrt(inefficiency(parts))
    ordered = sorted(values)
    centre = math.sqrt(ordered[(len(values) - 1) // 2] * ordered[len(values) // 2])
    if factor > 1:
        low, high = 1 / (1 / centre + factor * (1 / low - 1 / centre)), centre + factor * (high - centre)
    if len(parts) > 1:
        logs = [math.log(statistics.median(part)) for part in parts]
        reach = float(student.ppf(0.975, len(logs) - 1)) * statistics.stdev(logs) / math.sqrt(len(logs))
        low = min(low, math.exp(statistics.mean(logs) - reach))
        high = max(high, math.exp(statistics.mean(logs) + reach))
    return median, low, high


def clock_interval(record: dict[str, Any], clock: str) -> tuple[float, float, float]:
    """Interval of a record's clock as the record has it: not widened where it tells no autocorrelation."""
    timing = record["timing"]
    if timing["summary"][clock].get("effective") is None:
        return independent_interval(timing[clock])
    return median_interval(timing[clock], timing.get("workers", []))


def fastest(records: list[dict[str, Any]]) -> dict[str, Any]:
    """The record with the least median, on one clock where all have one."""
    own = {r["timing"]["rank"] for r in records}
    span, wall = (all(r["timing"][clock] for r in records) for clock in ("span", "wall"))
    common = "span" if own == {"span"} and span else "wall" if wall else None
    return min(records, key=lambda r: (statistics.median(r["timing"][common or r["timing"]["rank"]]), r["key"]))


def as_list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def side(claim: dict[str, Any], selector: dict[str, Any], records: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The records of a side; of its stand-ins where there is none of its own."""
    return taken(claim, selector, as_list(selector["variant"]), records) or taken(
        claim, selector, as_list(selector.get("instead", [])), records
    )


def taken(
    claim: dict[str, Any], selector: dict[str, Any], variants: list[str], records: list[dict[str, Any]]
) -> list[dict[str, Any]]:
    wanted = {**claim.get("parameters", {}), **selector.get("parameters", {})}
    return [
        r
        for r in records
        if r["identity"]["problem"] == claim["problem"]
        and r["identity"]["variant"] in variants
        and r["identity"].get("profile") == selector.get("profile")
        and selector.get("precision") in (None, r["identity"]["precision"])
        and all(fits(w, r["identity"]["parameters"].get(k)) for k, w in wanted.items())
        and all(fits(w, r["identity"]["tunables"].get(k)) for k, w in selector.get("tunables", {}).items())
        and r["status"] == "ok"
    ]


def speedup(slow: dict[str, Any], fast: dict[str, Any]) -> tuple[float, float, float] | None:
    """Time of the first over time of the second, round by round where they were taken together."""
    a, b = slow["timing"], fast["timing"]
    clock = "span" if a["rank"] == b["rank"] == "span" and a["span"] and b["span"] else "wall"
    if not (a[clock] and b[clock]):
        return None
    one, two = slow["identity"], fast["identity"]
    together = (slow["run"], slow["seed"]) == (fast["run"], fast["seed"]) and one["parameters"] == two["parameters"]
    if together and len(a[clock]) == len(a["rounds"]) and len(b[clock]) == len(b["rounds"]):
        first, second = (dict(zip(t["rounds"], t[clock], strict=True)) for t in (a, b))
        common = first.keys() & second.keys()
        if len(common) >= 6:
            owner = dict(zip(a["rounds"], a.get("workers") or [0] * len(a["rounds"]), strict=True))
            rounds = sorted(common)
            return median_interval([first[i] / second[i] for i in rounds], [owner[i] for i in rounds])
    (x, xl, xh), (y, yl, yh) = (median_interval(each[clock], each.get("workers", [])) for each in (a, b))
    return x / y, xl / yh, xh / yl


def dig(record: dict[str, Any], path: str) -> float | None:
    value: Any = record
    for part in path.split("."):
        value = value.get(part) if isinstance(value, dict) else None
    return value if isinstance(value, (int, float)) and not isinstance(value, bool) else None


def measure(claim: dict[str, Any], sides: list[dict[str, Any]]) -> tuple[float, float, float] | None:
    """The number that the claim is about, with its interval."""
    kind, subject = claim["compare"], sides[0]
    if kind == "speedup":
        return speedup(sides[1], subject)
    if kind == "share":
        share = (subject.get(claim.get("share_of", "problem_bound")) or {}).get("share")
        return (share["value"], share["low"], share["high"]) if share else None
    if kind == "overhead":
        clock = "span" if all(r["timing"]["rank"] == "span" and r["timing"]["span"] for r in sides) else "wall"
        if not all(r["timing"][clock] for r in sides):
            return None
        s, r, b = (clock_interval(record, clock) for record in sides)
        (n, n_low, n_high), (d, d_low, d_high) = ((x[0] - b[0], x[1] - b[2], x[2] - b[1]) for x in (r, s))
        value = n / d if d else math.inf
        if d_low <= 0:  # the subject may add nothing
            return value, n_low / d_high if n_low > 0 and d_high > 0 else -math.inf, math.inf
        return value, n_low / (d_high if n_low > 0 else d_low), n_high / (d_low if n_high > 0 else d_high)
    if kind == "kernel_share":
        kernels = sides[-1]["timing"]["kernels"]
        some, every = sum(t for name, t in kernels.items() if name in claim["kernels"]), sum(kernels.values())
        if not every:
            return None
        if "reference" not in claim:
            return some / every, some / every, some / every
        if any(record["timing"]["rank"] != "span" or not record["timing"]["span"] for record in sides):
            return None
        whole, low, high = clock_interval(subject, "span")
        return some / whole, some / high, some / low
    value = dig(subject, claim["figure"])
    if value is not None and "base" in claim:
        less = dig(sides[-1], claim["figure"])
        value = None if less is None else value - less
    if value is not None and ("reference" in claim or "reference_figure" in claim):
        other = sides[1] if "reference" in claim else subject
        under = dig(other, claim.get("reference_figure", claim["figure"]))
        value = value / under if under else None
    return None if value is None else (value, value, value)


def threshold(claim: dict[str, Any]) -> tuple[float, float]:
    """From where to where a claim holds; of a gain that is stated half is enough."""
    least = (1 + claim["stated"]) / 2 if "stated" in claim else claim.get("at_least", -math.inf)
    return least, claim.get("at_most", math.inf)


def nothing(claim: dict[str, Any]) -> float | None:
    """The number where there is no effect, if there is such a number."""
    if "no_effect" in claim:
        return float(claim["no_effect"])
    if claim["compare"] == "share":
        return 0.0 if "at_least" in claim else 1.0
    if claim["compare"] == "figure":
        return 1.0 if "reference" in claim or "reference_figure" in claim else None
    return 1.0 if claim["compare"] in ("speedup", "overhead") else None


def judge(claim: dict[str, Any], low: float, high: float) -> str:
    """The verdict of an interval. Claims of less are turned over, so that more is always what is claimed."""
    least, most = threshold(claim)
    zero = nothing(claim)
    if low >= least and high <= most:
        return "holds"
    if not (high < least or low > most):
        return "cannot tell"
    if zero is None or least <= zero <= most:
        return "opposite"
    if 0.98 * zero <= low <= high <= 1.02 * zero or low <= zero <= high:
        return "absent"
    if least == -math.inf:
        low, high, zero = -high, -low, -zero
    return "smaller" if low > zero else "opposite"


def summed_up(claim: dict[str, Any], numbers: list[tuple[float, float, float]]) -> str:
    """The verdict over several settings."""
    found = [judge(claim, low, high) for _, low, high in numbers]
    if len(set(found)) == 1:
        return found[0]
    if "holds" not in found and "cannot tell" not in found:
        return "absent"
    if "smaller" not in found or "absent" in found or "opposite" in found:
        return "cannot tell"
    zero, upwards = nothing(claim), threshold(claim)[0] > -math.inf
    assert zero is not None
    return "smaller" if all(low > zero if upwards else high < zero for _, low, high in numbers) else "cannot tell"


def verdict(claim: dict[str, Any], records: list[dict[str, Any]]) -> str:
    """The verdict of a claim on the records of one device."""
    selectors = [claim[name] for name in ("subject", "reference", "base") if name in claim]
    own = {name for s in selectors for name in s.get("parameters", {})}
    switched = {name for s in selectors for name in s.get("tunables", {})}
    alike = len(selectors) > 1 and all(
        all(s.get(key) == selectors[0].get(key) for key in ("variant", "instead", "profile")) for s in selectors
    )
    free = any(s.get("precision") for s in selectors)
    sides: list[dict[str, dict[str, Any]]] = []
    for selector in selectors:
        groups: dict[str, list[dict[str, Any]]] = {}
        for record in side(claim, selector, records):
            who = record["identity"]
            setting = [{k: v for k, v in who["parameters"].items() if k not in own}]
            setting.append({k: v for k, v in who["tunables"].items() if k not in switched} if alike else {})
            setting.append("" if free else who["precision"])
            groups.setdefault(json.dumps(setting, sort_keys=True), []).append(record)
        sides.append({key: fastest(group) for key, group in groups.items()})
    kinds = {record["kind"] for record in records}
    if "applies_to" in claim and not kinds & set(as_list(claim["applies_to"])):
        return "not applicable"
    common = set.intersection(*(set(best) for best in sides))
    numbers = [measure(claim, [best[key] for best in sides]) for key in sorted(common)]
    known = [number for number in numbers if number is not None]
    if not known or len(known) < len(numbers):
        return "not measured"
    if claim.get("over") == "mean":
        known = [tuple(statistics.fmean(column) for column in zip(*known, strict=True))]  # type: ignore[misc]
    summary = summed_up(claim, known)
    return "by construction" if summary == "holds" and "by_construction" in claim else summary


def main(results: Path, claims: Path) -> dict[str, str]:
    """Every verdict, by workload, claim and device."""
    devices = load(results)
    found = {}
    for file in sorted(claims.glob("*/claims.yaml")):
        own = {d: [r for r in rs if r["identity"]["workload"] == file.parent.name] for d, rs in devices.items()}
        ran = {d: mine for d, mine in own.items() if any(r["identity"]["role"] != "peer" for r in mine)} or own
        for claim in yaml.safe_load(file.read_text()):
            for device, mine in ran.items():
                found[f"{file.parent.name}/{claim['id']}/{device}"] = verdict(claim, mine)
    return found


if __name__ == "__main__":
    print(json.dumps(main(Path(sys.argv[1]), Path(sys.argv[2])), indent=1))
