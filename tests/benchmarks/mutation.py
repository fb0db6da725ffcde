"""Mutation testing of the modules that decide verdicts, each with its own test files: run by hand (``tox -e mutate``).

    python tests/benchmarks/mutation.py [--sample 20] [--seed 1] [MODULE ...]

Cosmic Ray (the packages ``cosmic-ray``) finds the places and writes the mutants, into a copy of the package, so that a
run that is killed leaves the working tree as it is. Each mutant is tested in a forked child of a process that has
imported the libraries and nothing of the suite: a start of pytest costs more than most of these tests.

Prints a table with the score of each module and the line of every survivor. Survivors that no test can kill are listed
with their reason in ``equivalent_mutants.yaml`` and are left out of the score.
"""

from __future__ import annotations

import argparse
import os
import random
import re
import resource
import shutil
import signal
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path

import yaml

ROOT = Path(__file__).parents[2]
EQUIVALENT = Path(__file__).with_name("equivalent_mutants.yaml")
#: Test files of a module that has others than its own; paths below ``tests``.
TESTS = {
    "nightly/check.py": ["nightly/test_check.py", "nightly/test_base.py"],
    "measure/intervals.py": ["measure/test_intervals.py", "measure/test_repeats.py"],
    "run/keys.py": ["run/test_keys.py", "run/test_plan.py"],
    "store/results.py": ["store/test_results.py", "store/test_environment.py", "store/test_reading.py"],
}
MODULES = (
    "judge/compare.py", "judge/portability.py", "measure/agreement.py", "measure/autocorrelation.py",
    "measure/contents.py", "measure/intervals.py", "measure/repeats.py", "measure/roofline.py", "model/work.py",
    "nightly/base.py", "nightly/check.py", "nightly/checkout.py", "nightly/finding.py", "nightly/inturn.py",
    "nightly/levels.py", "nightly/shift.py", "nightly/significance.py", "nightly/trials.py", "run/keys.py",
    "run/plan.py", "run/worker/audit.py", "run/worker/group.py", "run/worker/inputs.py", "run/worker/integrity.py",
    "run/worker/layouts.py", "run/worker/live.py", "run/worker/placement.py", "run/worker/probing.py",
    "store/comparable.py", "store/crossfit.py", "store/results.py", "store/writing.py", "workload/execution.py",
    "workload/guarded.py", "workload/names.py", "workload/outputs.py", "workload/problem.py",
)  # fmt: skip
#: Beginnings of the names of tests that are left out, by file below ``tests``: what they start is the code of the
#: working tree, or they draw for seconds what tests of single cases tell as well.
SLOW = {
    "judge/test_compare.py": ["test_the_luckiest"],
    "judge/test_portability.py": ["test_a_variant_is_as_good_as_the_luckiest"],
    "nightly/test_inturn.py": ["test_code_that_is_slower_is_seen"],
    "run/worker/test_group.py": [
        "test_a_wrong_work_model",
        "test_a_wrong_multiplicity",
        "test_probes_that_stay_off",
        "test_instances_are_timed",
        "test_each_run_verifies",
    ],
    "nightly/test_trials.py": ["test_at_most_one_red_night", "test_a_slow_down_is_seen"],
    "store/test_crossfit.py": ["test_the_best_of_equal", "test_workers_that_differ"],
}
#: Operators that Cosmic Ray has for arithmetic on bits and for identity say nothing here: ``|`` stands in annotations,
#: and what is compared by ``is`` is ``None`` or a member of an enumeration.
LEFT_OUT = re.compile(r"core/(Replace\w*(Bit|Shift|_Is)|Variable)")
LIBRARIES = ("hypothesis", "numpy", "pandas", "pydantic", "pytest", "scipy.special", "scipy.stats", "yaml")
#: Of a process with a mutant, which may never end; it may have to wait for the processor ten times as long.
CPU_LIMIT_S = 60


def mutants(path: Path) -> Iterator[str]:
    """Yield the source of every mutant of a module."""
    from cosmic_ray.ast import ast_nodes, get_ast_from_path
    from cosmic_ray.mutating import mutate_code
    from cosmic_ray.plugins import get_operator, operator_names

    code, tree = path.read_text(), get_ast_from_path(path)
    for name in sorted(operator_names()):
        if LEFT_OUT.match(name):
            continue
        operator = get_operator(name)()
        places = [place for node in ast_nodes(tree) for place in operator.mutation_positions(node)]
        for occurrence in range(len(places)):
            with suppress(AttributeError):  # Cosmic Ray takes no exception by a dotted name
                if mutated := mutate_code(code, operator, occurrence):
                    yield mutated


def tests_pass(package: Path, tests: Sequence[str]) -> bool:
    """Whether test files pass with the package in this folder, in a forked child; too long is a failure."""
    child = os.fork()
    if child == 0:
        resource.setrlimit(resource.RLIMIT_CPU, (CPU_LIMIT_S, CPU_LIMIT_S))
        signal.alarm(10 * CPU_LIMIT_S)
        quiet = os.open(os.devnull, os.O_WRONLY)
        os.dup2(quiet, 1)
        os.dup2(quiet, 2)
        sys.path.insert(0, str(package))
        os.environ["PYTHONPATH"] = str(package)  # of processes that tests start
        import pytest

        slow = [f"--deselect=tests/{test}::{name}" for test in tests for name in SLOW.get(test, [])]
        os._exit(pytest.main(["-x", "-q", *slow, *(str(ROOT / "tests" / test) for test in tests)]))
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def changed_line(code: str, mutated: str) -> str:
    """Return the line of a mutant that differs."""
    before, after = code.splitlines(), mutated.splitlines()
    return next((new.strip() for old, new in zip(before, after, strict=False) if old != new), after[-1].strip())


def score(module: str, package: Path, sample: int, seed: int, known: set[str]) -> tuple[str, list[str]]:
    """Return a row of the table for a module, and the lines of its survivors that no list calls equivalent."""
    path = package / "perfport" / module
    code = path.read_text()
    folder, name = module.rsplit("/", 1)
    tests = TESTS.get(module, [f"{folder}/test_{name}"])
    if not tests_pass(package, tests):
        sys.exit(f"{module}: its tests fail without a mutant")
    path.write_text("raise ImportError\n")
    if tests_pass(package, tests):
        sys.exit(f"{module}: its tests do not import it from the copy")
    path.write_text(code)
    every = list(mutants(path))
    drawn = random.Random(f"{seed} {module}").sample(every, min(sample, len(every)))
    survivors = []
    for number, mutated in enumerate(drawn, 1):
        path.write_text(mutated)
        survived, line = tests_pass(package, tests), changed_line(code, mutated)
        if survived:
            survivors.append(line)
        print(f"{module}: {number} of {len(drawn)} {'survived' if survived else 'killed'}: {line}", file=sys.stderr)
    path.write_text(code)
    left = [line for line in survivors if line not in known]
    equivalent = len(survivors) - len(left)
    killed, judged = len(drawn) - len(survivors), len(drawn) - equivalent
    return f"| `{module}` | {len(drawn)} of {len(every)} | {killed} | {equivalent} | {killed / judged:.0%} |", left


def main() -> None:
    """Print the table and the survivors."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("modules", nargs="*", default=MODULES, help="paths below suite/perfport")
    parser.add_argument("--sample", type=int, default=20, help="mutants of a module, drawn at random")
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    for library in LIBRARIES:
        __import__(library)
    sys.dont_write_bytecode = True  # two mutants of a module may share second and size, and with them their bytecode
    os.environ["PYTHONDONTWRITEBYTECODE"] = "1"
    os.chdir(ROOT)
    known = yaml.safe_load(EQUIVALENT.read_text())
    print("| module | mutants | killed | equivalent | score |\n| --- | --- | --- | --- | --- |")
    survivors = {}
    with tempfile.TemporaryDirectory() as folder:
        package = Path(shutil.copytree(ROOT / "suite", Path(folder) / "suite"))
        for module in given.modules:
            lines = {line for entry in known.get(module, []) for line in entry["lines"]}
            row, survivors[module] = score(module, package, given.sample, given.seed, lines)
            print(row, flush=True)
    for module, lines in survivors.items():
        print("\n".join(["", module, *(f"    {line}" for line in lines)]) if lines else "", end="\n" if lines else "")


if __name__ == "__main__":
    main()
