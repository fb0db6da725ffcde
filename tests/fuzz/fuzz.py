"""Fuzz the readers of the project, one after another, guided by coverage (atheris): see README.md beside this file.

python tests/fuzz/fuzz.py --seconds 3600
python tests/fuzz/fuzz.py --seconds 300 records cascade
"""

from __future__ import annotations

import argparse
import hashlib
import os
import random
import re
import resource
import subprocess
import sys
import tempfile
import time
import traceback
from pathlib import Path

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
sys.path.insert(0, str(ROOT / "tests" / "support"))

MEMORY = 4 << 30  # bytes of address space beyond what the imports took: more than any small file may ask for
RESIDENT_MIB = 2048
TIMEOUT_S = 10  # for one input
LONGEST = 1 << 16  # bytes of an input
#: Instrumented. Not PyYAML: its scanner compares every character, and would read two files in a second.
PACKAGES = ["perfport", "PIL", "zipfile"]


def main() -> int:
    parser = argparse.ArgumentParser(description="Fuzz the readers of the project.")
    parser.add_argument("targets", nargs="*", help="names of targets; all unless given")
    parser.add_argument("--seconds", type=float, default=600, help="for all targets together")
    parser.add_argument("--folder", type=Path, default=ROOT / "results" / "fuzz", help="for findings and corpora")
    parser.add_argument("--alone", action="store_true", help=argparse.SUPPRESS)  # the child: fuzz one target here
    options = parser.parse_args()
    if options.alone:
        fuzz(options.targets[0], options.seconds, options.folder / options.targets[0])
    from fuzz_targets import TARGETS

    names = options.targets or list(TARGETS)
    if unknown := [name for name in names if name not in TARGETS]:
        parser.error(f"no target {unknown[0]!r}; there are: {', '.join(TARGETS)}")
    print(f"| {'target':12} | {'seconds':>7} | {'executions':>10} | findings |\n|---|---|---|---|", flush=True)
    found = 0
    for name in names:
        seconds, executions = supervised(name, options.seconds / len(names), options.folder)
        findings = sorted((options.folder / name).glob("finding-*.txt"))
        found += len(findings)
        print(f"| {name:12} | {seconds:7.0f} | {executions:10} | {len(findings):8} |", flush=True)
        for finding in findings:
            print(f"    {finding}: {finding.read_text().strip().splitlines()[-1][:200]}", flush=True)
    return 1 if found else 0


def supervised(name: str, seconds: float, folder: Path) -> tuple[float, int]:
    """Fuzz one target in a child; where an input kills that, keep the input and go on. Returns seconds, executions."""
    own = folder / name
    own.mkdir(parents=True, exist_ok=True)
    began, executions = time.monotonic(), 0
    while (left := seconds - (time.monotonic() - began)) > 1:
        command = [sys.executable, __file__, "--alone", "--seconds", str(left), "--folder", str(folder), name]
        with (own / "log.txt").open("wb") as log:
            code = subprocess.run(command, stdout=log, stderr=log, check=False).returncode
        log_text = (own / "log.txt").read_text(errors="replace")
        executions += sum(map(int, re.findall(r"stat::number_of_executed_units:\s*(\d+)", log_text)))
        if not code:
            break
        killers = [path for kind in ("timeout", "oom", "crash", "slow-unit") for path in own.glob(f"{kind}-*")]
        if not killers:
            raise SystemExit(f"{name}: the fuzzer itself ended with code {code}; see {own / 'log.txt'}")
        for path in killers:
            path.rename(own / f"finding-{path.name}.bin")
            (own / f"finding-{path.name}.txt").write_text(log_text[-20_000:] + f"\n{path.name}\n")
    return time.monotonic() - began, executions


class Findings:
    """Keeps the first input of each fault; a fault is an exception's class and the project's line that let it out."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def add(self, content: bytes, error: Exception) -> None:
        """Write the input and the traceback, unless the fault is known."""
        frames = traceback.extract_tb(error.__traceback__)
        own = [frame for frame in frames if "perfport" in frame.filename or "workloads" in frame.filename]
        place = own[-1] if own else frames[-1]
        name = f"{type(error).__name__}-{Path(place.filename).stem}-{place.lineno}"
        path = self.folder / f"finding-{name}.txt"
        if not path.exists():
            path.with_suffix(".bin").write_bytes(content)
            path.write_text("".join(traceback.format_exception(error))[-20_000:])


def fuzz(name: str, seconds: float, folder: Path) -> None:
    """Fuzz one target in this process, which ends with it."""
    import atheris

    with atheris.instrument_imports(include=PACKAGES):
        from fuzz_mutations import mutated
        from fuzz_targets import LOG, TARGETS, tried

        LOG.propagate = False  # what is left out would fill the log
        target = TARGETS[name]
        shared = Path("/dev/shm")
        scratch = Path(tempfile.mkdtemp(dir=shared if os.access(shared, os.W_OK) else None))
        corpus = folder / "corpus"
        corpus.mkdir(parents=True, exist_ok=True)
        for content in target.seeds().values():
            tried(target, content, scratch)  # imports all that it needs
            (corpus / hashlib.sha1(content).hexdigest()).write_bytes(content)
    findings = Findings(folder)

    def execute(content: bytes) -> None:
        try:
            tried(target, content, scratch)
        except Exception as error:
            findings.add(content, error)

    def mutate(content: bytes, most: int, seed: int) -> bytes:
        return mutated(target.form, content, random.Random(seed), atheris.Mutate, most)

    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + MEMORY, used + MEMORY))
    kept = [str(path) for path in (HERE / "kept" / name,) if path.is_dir()]
    flags = [
        f"-max_total_time={max(1, int(seconds))}", f"-timeout={TIMEOUT_S}", f"-rss_limit_mb={RESIDENT_MIB}",
        f"-max_len={LONGEST}", f"-artifact_prefix={folder}/", "-print_final_stats=1", "-seed=1",
    ]  # fmt: skip
    atheris.Setup([sys.argv[0], *flags, str(corpus), *kept], execute, custom_mutator=mutate)
    atheris.Fuzz()


if __name__ == "__main__":
    sys.exit(main())
