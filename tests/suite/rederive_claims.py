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
            what += [who.get("profile"), who["precision"], who["devices"], chips, machine]
            key = json.dumps(what, sort_keys=True)
            place[key] = f"{' + '.join(who['devices'])}/{' + '.join(dict.fromkeys(chips))}/{machine}"
            rank = (order.get(record["status"], 0), record["time"])
            if key not in latest or (order.get(latest[key]["status"], 0), latest[key]["time"]) <= rank:
                latest[key] = record
    found: dict[str, list[dict[str, Any]]] = {}
    for key, record in latest.items():
        found.setdefault(place[key], []).append(record)
    return found


def fits(wanted: Any, value: Any) -> bool:
    """Whether a parameter is what a selector asks for."""
    if isinstance(wanted, dict):
        number = isinstance(value, (int, float))
        return number and wanted.get("min", -math.inf) <= value <= wanted.get("max", math.inf)
    return any(fits(one, value) for one in wanted) if isinstance(wanted, list) else value == wanted


def median_interval(values: list[float]) -> tuple[float, float, float]:
    """Median and the order statistics around it that miss it with 5 % probability at most."""
    values, n = sorted(values), len(values)
    rank, below = 0, 0.0
    for k in range(n // 2):
        below += math.comb(n, k) / 2**n
        if 2 * below <= 0.05:
            rank = k
    return statistics.median(values), values[rank], values[n - 1 - rank]


def fastest(records: list[dict[str, Any]]) -> dict[str, Any]:
    """The record with the least median, on one clock where all have one."""
    own = {r["timing"]["rank"] for r in records}
    span, wall = (all(r["timing"][clock] for r in records) for clock in ("span", "wall"))
    common = "span" if own == {"span"} and span else "wall" if wall else None
    return min(records, key=lambda r: (statistics.median(r["timing"][common or r["timing"]["rank"]]), r["key"]))


def side(claim: dict[str, Any], selector: dict[str, Any], records: list[dict[str, Any]]) -> list[dict[str, Any]]:
    variants = selector["variant"] if isinstance(selector["variant"], list) else [selector["variant"]]
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
            return median_interval([first[i] / second[i] for i in common])
    (x, xl, xh), (y, yl, yh) = median_interval(a[clock]), median_interval(b[clock])
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
        share = subject.get("problem_bound", {}).get("share")
        return (share["value"], share["low"], share["high"]) if share else None
    if kind == "overhead":
        clock = "span" if all(r["timing"]["rank"] == "span" and r["timing"]["span"] for r in sides) else "wall"
        if not all(r["timing"][clock] for r in sides):
            return None
        s, r, b = (median_interval(record["timing"][clock]) for record in sides)
        low = (r[1] - b[2]) / (s[2] - b[1]) if s[2] - b[1] > 0 else -math.inf
        high = (r[2] - b[1]) / (s[1] - b[2]) if s[1] - b[2] > 0 else math.inf
        return (r[0] - b[0]) / (s[0] - b[0]) if s[0] != b[0] else math.inf, low, high
    if kind == "kernel_share":
        kernels = subject["timing"]["kernels"]
        if not sum(kernels.values()):
            return None
        value = sum(t for name, t in kernels.items() if name in claim["kernels"]) / sum(kernels.values())
        return value, value, value
    value = dig(subject, claim["figure"])
    if value is not None and ("reference" in claim or "reference_figure" in claim):
        under = dig(sides[-1], claim.get("reference_figure", claim["figure"]))
        value = value / under if under else None
    return None if value is None else (value, value, value)


def judge(claim: dict[str, Any], number: tuple[float, float, float]) -> str:
    least, most = claim.get("at_least", -math.inf), claim.get("at_most", math.inf)
    _, low, high = number
    if least <= low and high <= most:
        return "holds"
    return "reversed" if high < least or low > most else "cannot tell"


def verdict(claim: dict[str, Any], records: list[dict[str, Any]]) -> str:
    """The verdict of a claim on the records of one device."""
    selectors = [claim[name] for name in ("subject", "reference", "base") if name in claim]
    own = {name for s in selectors for name in s.get("parameters", {})}
    switched = {name for s in selectors for name in s.get("tunables", {})}
    alike = len(selectors) > 1 and all(
        (s["variant"], s.get("profile")) == (selectors[0]["variant"], selectors[0].get("profile")) for s in selectors
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
    common = set.intersection(*(set(best) for best in sides))
    numbers = [measure(claim, [best[key] for best in sides]) for key in sorted(common)]
    known = [number for number in numbers if number is not None]
    if not known or len(known) < len(numbers):
        return "not measured"
    if claim.get("over") == "mean":
        known = [tuple(statistics.fmean(column) for column in zip(*known, strict=True))]  # type: ignore[misc]
    found = {judge(claim, number) for number in known}
    return found.pop() if len(found) == 1 else "cannot tell"


def main(results: Path, claims: Path) -> dict[str, str]:
    """Every verdict, by workload, claim and device."""
    devices = load(results)
    found = {}
    for file in sorted(claims.glob("*/claims.yaml")):
        for claim in yaml.safe_load(file.read_text()):
            for device, records in devices.items():
                mine = [r for r in records if r["identity"]["workload"] == file.parent.name]
                found[f"{file.parent.name}/{claim['id']}/{device}"] = verdict(claim, mine)
    return found


if __name__ == "__main__":
    print(json.dumps(main(Path(sys.argv[1]), Path(sys.argv[2])), indent=1))
