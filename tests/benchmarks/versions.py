"""Time several versions of the project beside each other: the same variants, in turn, on one device.

    python tests/benchmarks/versions.py CASES.yaml NAME=FOLDER NAME=FOLDER ... --device cuda:nvidia:0 [--rounds N]

Each FOLDER holds an installed version (``pip install --no-deps --target FOLDER .``), run by a process of its own.
A case is built by all of them; then they execute it one after the other, each round beginning with another version, and
each execution is timed as `perfport run` times it. What changes slowly on the machine is in all of them alike. Outputs
are compared between versions, sorted where their order is free, and never with a reference, which takes minutes for
large inputs.

CASES.yaml is a list of mappings: workload, problem, parameters (or preset), variant, tunables.

Prints a markdown table: the median of each version, and each one's ratio of times to the first, by round: the median
with its interval.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import statistics
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import yaml

from perfport.measure.intervals import summarise

ROUNDS = 21


def serve(device_id: str) -> None:
    """Be the process of one version: a line of JSON asks, a line answers."""
    from perfport import backend, workload
    from perfport.machine import discovery, platforms
    from perfport.workload import Session, build

    info = next(device for device in discovery.discover() if device.id == device_id)
    if info.runtime:
        platforms.use([info.runtime])
    device = backend.get(info.backend).open(info)
    workloads = workload.discover()
    sessions: dict[str, Session] = {}
    built: Any = None
    for line in sys.stdin:
        case = json.loads(line)
        if case is None:
            built.poison()
            answer: Any = device.timed(built.variant.launch).span
        else:
            if built:
                built.release()
            folder = workloads[case["workload"]]
            problem, cls = folder.problem(case["problem"]), folder.variant(case["problem"], case["variant"])
            parameters = problem.presets[case["preset"]] if "preset" in case else case["parameters"]
            key = json.dumps([case["workload"], case["problem"], parameters])
            if key not in sessions:
                for session in sessions.values():
                    session.close()
                sessions = {key: Session(device, problem(problem.Parameters(**parameters), 1), folder.folder)}
            tunables = {name: tunable.default_for(info) for name, tunable in cls.tunables.items()}
            if cls.host or cls.host_driven:
                raise SystemExit(f"{cls.name}: expected a variant that events of a device time, got one of the host")
            built = build(cls, sessions[key], tunables | case.get("tunables", {}), {})
            built.poison()
            built.launch()
            device.finish()
            digest = hashlib.sha256()
            for name, value in sorted(built.outputs().items()):
                digest.update(name.encode() + np.sort(np.asarray(value), axis=None).tobytes())
            answer = digest.hexdigest()
        print(json.dumps(answer), file=sys.__stdout__, flush=True)


class Version:
    """A version's process."""

    def __init__(self, name: str, folder: str, device: str) -> None:
        self.name = name
        paths = os.pathsep.join([str(Path(folder).resolve()), os.environ.get("PYTHONPATH", "")])
        self.process = subprocess.Popen(
            [sys.executable, __file__, "--serve", "--device", device],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env={**os.environ, "PYTHONPATH": paths},
        )  # fmt: skip

    def ask(self, question: Any) -> Any:
        """Return what the process answers."""
        assert self.process.stdin and self.process.stdout
        print(json.dumps(question), file=self.process.stdin, flush=True)
        answer = self.process.stdout.readline()
        if not answer:
            raise SystemExit(f"{self.name}: ended with {self.process.wait()} at {question}")
        return json.loads(answer)


def measure(versions: list[Version], case: dict[str, Any], rounds: int) -> str:
    """Return the row of one case."""
    digests = {version.ask(case) for version in versions}
    times: dict[str, list[float]] = {version.name: [] for version in versions}
    for number in range(rounds + 1):
        at = number % len(versions)
        for version in versions[at:] + versions[:at]:
            seconds = version.ask(None)
            if number:  # the first is warm-up
                times[version.name].append(seconds)
    first = times[versions[0].name]
    cells = [f"{statistics.median(first) * 1e3:.4g}"]
    for version in versions[1:]:
        ratios = [mine / base for mine, base in zip(times[version.name], first, strict=True)]
        ratio = summarise(ratios)
        cells.append(f"{statistics.median(times[version.name]) * 1e3:.4g}")
        cells.append(f"{ratio.median:.3f} [{ratio.ci_low:.3f}, {ratio.ci_high:.3f}]")
    what = case.get("preset") or ", ".join(f"{key} {value}" for key, value in case["parameters"].items())
    tunables = ", ".join(f"{key} {value}" for key, value in case.get("tunables", {}).items())
    name = f"{case['problem']}/{case['variant']}" + (f" ({tunables})" if tunables else "")
    return " | ".join([name, what, *cells, "same" if len(digests) == 1 else "**differ**"])


def main() -> None:
    """Measure all cases."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("cases", nargs="?", type=Path)
    parser.add_argument("versions", nargs="*", metavar="NAME=FOLDER")
    parser.add_argument("--device", required=True)
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.serve:
        return serve(options.device)
    if not options.cases or len(options.versions) < 2:
        parser.error("expected a file of cases and two versions at least")
    pairs = (pair.partition("=") for pair in options.versions)
    versions = [Version(name, folder, options.device) for name, _, folder in pairs]
    head = ["case", "inputs", f"{versions[0].name}, ms"]
    for version in versions[1:]:
        head += [f"{version.name}, ms", f"{version.name} over {versions[0].name}"]
    head.append("outputs")
    print("| " + " | ".join(head) + " |\n" + "| --- " * len(head) + "|")
    for case in yaml.safe_load(options.cases.read_text()):
        print("| " + measure(versions, case, options.rounds) + " |", flush=True)


if __name__ == "__main__":
    main()
