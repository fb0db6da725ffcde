"""Time several versions of the project, or several devices of one chip, beside each other: the same variants, in turn.

    python tests/benchmarks/versions.py CASES.yaml before=FOLDER after=FOLDER ... --device cuda:nvidia:0 [--rounds N]
    python tests/benchmarks/versions.py CASES.yaml CUDA=@cuda:nvidia:0 OpenCL=@opencl:nvidia:0

Each FOLDER holds an installed version (``pip install --no-deps --target FOLDER .``; none: the one that is imported),
run by a process of its own, on the device after ``@`` or on ``--device``.
A case is built by all of them; then they execute it one after the other, each round beginning with another version, and
each execution is timed as `perfport run` times it (one that the host drives, by the host's clock). What changes slowly
on the machine is in all of them alike. Outputs are compared between versions, sorted where their order is free, and
never with a reference, which takes minutes for large inputs. Two compilers may round differently: outputs that differ
are a fault between two versions on one device only.

CASES.yaml is a list of mappings: workload, problem, parameters (or preset), variant (a name or a list), tunables.

Prints a markdown table: the median of each version, and each one's ratio of times to the first, by round: the median
with its interval; at the end the geometric mean of each one's ratios. A case that one of them cannot build or execute
is a row with the reason.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import math
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
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
    from perfport.model.errors import UsageError
    from perfport.workload import Session, build

    info = next(device for device in discovery.discover() if device.id == device_id)
    if info.runtime:
        platforms.use([info.runtime])
    device = backend.get(info.backend).open(info)
    workloads = workload.discover()
    sessions: dict[str, Session] = {}
    built: Any = None

    def make(case: dict[str, Any]) -> str:
        nonlocal built, sessions
        if built:
            built.release()
            built = None
        folder = workloads[case["workload"]]
        problem, cls = folder.problem(case["problem"]), folder.variant(case["problem"], case["variant"])
        parameters = problem.presets[case["preset"]] if "preset" in case else case["parameters"]
        key = json.dumps([case["workload"], case["problem"], parameters])
        if key not in sessions:
            for session in sessions.values():
                session.close()
            sessions = {key: Session(device, problem(problem.Parameters(**parameters), 1), folder.folder)}
        if cls.host:
            raise UsageError(f"{cls.name}: expected a variant of a device, got one of the host")
        tunables = {name: tunable.default_for(info) for name, tunable in cls.tunables.items()}
        built = build(cls, sessions[key], tunables | case.get("tunables", {}), {})
        built.poison()
        built.launch()
        device.finish()
        digest = hashlib.sha256()
        for name, value in sorted(built.outputs().items()):
            digest.update(name.encode() + np.sort(np.asarray(value), axis=None).tobytes())
        return digest.hexdigest()

    def execute() -> float:
        built.poison()
        if not built.variant.host_driven:
            return device.timed(built.variant.launch).span
        device.finish()
        begin = time.perf_counter()
        built.variant.launch()
        device.finish()
        return time.perf_counter() - begin

    for line in sys.stdin:
        case = json.loads(line)
        try:
            answer: Any = execute() if case is None else make(case)
        except Exception as error:  # of any kind: the case is lost, the others are not
            answer = {"error": f"{type(error).__name__}: {error}"[:300]}
        print(json.dumps(answer), file=sys.__stdout__, flush=True)


class CaseError(Exception):
    """A version cannot build or execute a case."""


class Version:
    """A version's process."""

    def __init__(self, name: str, folder: str, device: str) -> None:
        self.name = name
        paths = os.pathsep.join(
            filter(None, [folder and str(Path(folder).resolve()), os.environ.get("PYTHONPATH", "")])
        )
        self.process = subprocess.Popen(
            [sys.executable, __file__, "--serve", "--device", device],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env={**os.environ, "PYTHONPATH": paths},
        )  # fmt: skip

    def send(self, question: Any) -> None:
        """Ask the process."""
        assert self.process.stdin
        print(json.dumps(question), file=self.process.stdin, flush=True)

    def receive(self) -> Any:
        """Return what the process answers. Raises `CaseError` for an error of the case."""
        assert self.process.stdout
        line = self.process.stdout.readline()
        if not line:
            raise SystemExit(f"{self.name}: ended with {self.process.wait()}")
        answer = json.loads(line)
        if isinstance(answer, dict):
            raise CaseError(f"{self.name}: {answer['error']}")
        return answer

    def ask(self, question: Any) -> Any:
        """Return what the process answers."""
        self.send(question)
        return self.receive()


def everywhere(versions: list[Version], case: dict[str, Any]) -> list[str]:
    """Build a case by all versions at the same time, and return their digests."""
    for version in versions:
        version.send(case)
    digests, errors = [], []
    for version in versions:
        try:
            digests.append(version.receive())
        except CaseError as error:
            errors.append(str(error))
    if errors:
        raise CaseError("; ".join(errors))
    return digests


def measure(versions: list[Version], case: dict[str, Any], rounds: int, logs: dict[str, list[float]]) -> str:
    """Return the row of one case, and add the logarithm of each ratio to its version's."""
    what = case.get("preset") or ", ".join(f"{key} {value}" for key, value in case["parameters"].items())
    tunables = ", ".join(f"{key} {value}" for key, value in case.get("tunables", {}).items())
    name = f"{case['problem']}/{case['variant']}" + (f" ({tunables})" if tunables else "")
    try:
        digests = set(everywhere(versions, case))
        times: dict[str, list[float]] = {version.name: [] for version in versions}
        for number in range(rounds + 1):
            at = number % len(versions)
            for version in versions[at:] + versions[:at]:
                seconds = version.ask(None)
                if number:  # the first is warm-up
                    times[version.name].append(seconds)
    except CaseError as error:
        return " | ".join([name, what, str(error).replace("|", "/").replace("\n", " ")])
    first = times[versions[0].name]
    cells = [f"{statistics.median(first) * 1e3:.4g}"]
    for version in versions[1:]:
        ratios = [mine / base for mine, base in zip(times[version.name], first, strict=True)]
        ratio = summarise(ratios)
        logs[version.name].append(math.log(ratio.median))
        cells.append(f"{statistics.median(times[version.name]) * 1e3:.4g}")
        cells.append(f"{ratio.median:.3f} [{ratio.ci_low:.3f}, {ratio.ci_high:.3f}]")
    return " | ".join([name, what, *cells, "same" if len(digests) == 1 else "**differ**"])


def cases(path: Path) -> Iterator[dict[str, Any]]:
    """Yield the cases of a file, one for each variant that an entry names."""
    for case in yaml.safe_load(path.read_text()):
        for variant in [case["variant"]] if isinstance(case["variant"], str) else case["variant"]:
            yield {**case, "variant": variant}


def main() -> None:
    """Measure all cases."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("cases", nargs="?", type=Path)
    parser.add_argument("versions", nargs="*", metavar="NAME=[FOLDER][@DEVICE]")
    parser.add_argument("--device", default="", help="of versions that name none")
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.serve:
        return serve(options.device)
    if not options.cases or len(options.versions) < 2:
        parser.error("expected a file of cases and two versions at least")
    versions = []
    for text in options.versions:
        name, _, place = text.partition("=")
        folder, _, device = place.partition("@")
        if not (device or options.device):
            parser.error(f"{text}: expected a device, as NAME=FOLDER@DEVICE or by --device")
        versions.append(Version(name, folder, device or options.device))
    head = ["case", "inputs", f"{versions[0].name}, ms"]
    for version in versions[1:]:
        head += [f"{version.name}, ms", f"{version.name} over {versions[0].name}"]
    head.append("outputs")
    print("| " + " | ".join(head) + " |\n" + "| --- " * len(head) + "|")
    logs: dict[str, list[float]] = {version.name: [] for version in versions}
    for case in cases(options.cases):
        print("| " + measure(versions, case, options.rounds, logs) + " |", flush=True)
    for version in versions[1:]:
        if ratios := logs[version.name]:
            mean, largest = math.exp(statistics.fmean(ratios)), math.exp(max(ratios))
            name = f"{version.name} over {versions[0].name}"
            print(f"\n{name}: geometric mean of {len(ratios)} ratios {mean:.3f}, largest {largest:.3f}")


if __name__ == "__main__":
    main()
