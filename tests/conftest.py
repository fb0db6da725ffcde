"""Devices of this machine and a command line to call, for all tests.

Every platform is found once per session, in child processes; a test that names ``device`` runs once on each of them
(``opencl``: on OpenCL platforms alone, ``cuda``: on GPUs alone) and is skipped by name where there is none.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Callable
from functools import cache
from pathlib import Path

import hypothesis
import pytest

from perfport import backend, cli
from perfport.backend import Artifact, Module, OpenDevice
from perfport.machine import platforms
from perfport.machine.discovery import discover
from perfport.measure.ceilings import Ceilings, store
from perfport.model.device import DeviceInfo

ENVIRONMENT = dict(os.environ)  # before any runtime was chosen for this process
BACKENDS = {"device": ("opencl", "cuda"), "opencl": ("opencl",), "cuda": ("cuda",)}


@cache
def healthy_devices() -> tuple[DeviceInfo, ...]:
    """Every device that works; this process sees exactly their OpenCL runtimes from now on."""
    found = [info for info in discover() if info.healthy]
    platforms.use({info.runtime for info in found if info.runtime})
    return tuple(found)


@cache
def opened(identifier: str) -> OpenDevice:
    """Open a device once per session; it loads each artifact once, since compiling takes most of the time."""
    info = next(info for info in healthy_devices() if info.id == identifier)
    device = backend.get(info.backend).open(info)
    device.load = cached_by_hash(device.load)  # type: ignore[method-assign]
    return device


def cached_by_hash(load: Callable[[Artifact], Module]) -> Callable[[Artifact], Module]:
    """Return a function that loads an artifact the first time that it sees its source and options."""
    loaded: dict[str, Module] = {}

    def load_once(artifact: Artifact) -> Module:
        if artifact.source_hash not in loaded:
            loaded[artifact.source_hash] = load(artifact)
        return loaded[artifact.source_hash]

    return load_once


def pytest_addoption(parser: pytest.Parser) -> None:
    # What `.ci/run` needs to run everything twice, with less and with more installed, and nothing twice in vain.
    group = parser.getgroup("perfport")
    group.addoption("--passed-to", metavar="FILE", help="Write the names of the tests that passed.")
    group.addoption(
        "--not-again", metavar="FILE", help="Leave out tests of such a file, unless they see what else is installed."
    )
    group.addoption("--verdicts", metavar="FILE", help="Write the table of cheats and their verdicts into this page.")


#: Through these fixtures a test sees every device and tool of the machine: it may differ from machine to machine.
SEE_ALL = {"opencl_infos", "perfport"}


def sees_all(item: pytest.Item) -> bool:
    """Whether a test may differ on a machine with more devices; not where any device of them serves."""
    return not item.get_closest_marker("any_device") and bool(SEE_ALL & set(getattr(item, "fixturenames", ())))


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if file := config.getoption("--not-again"):
        leave_out(config, items, file)
    # Files of tests that take minutes first, then those of many tests: no worker has the last of them alone for long.
    long = {item.path for item in items if item.get_closest_marker("minutes")}
    number = Counter(item.path for item in items)
    items.sort(key=lambda item: (item.path not in long, -number[item.path], item.path))


def leave_out(config: pytest.Config, items: list[pytest.Item], file: str) -> None:
    """Deselect the tests that a file names as passed, unless they see what else is installed."""
    passed = set(Path(file).read_text().splitlines())
    again = [item.nodeid not in passed or sees_all(item) for item in items]
    config.hook.pytest_deselected(items=[item for item, kept in zip(items, again, strict=True) if not kept])
    items[:] = [item for item, kept in zip(items, again, strict=True) if kept]


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    if file := config.getoption("--passed-to"):
        names = sorted(report.nodeid for report in terminalreporter.stats.get("passed", ()))
        Path(file).write_text("".join(f"{name}\n" for name in names))


def pytest_cmdline_main(config: pytest.Config) -> None:
    # Not in pyproject.toml: a session of benchmarks (extra `bench`) has no pytest-timeout, which knows that key.
    if config.pluginmanager.hasplugin("timeout") and config.option.timeout is None:
        config.option.timeout = 300


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "minutes: takes more than a minute; its file is begun first.")
    config.addinivalue_line("markers", "any_device: tests the harness on one device of this machine, whichever it is.")
    # One cache for all tests, kept between sessions: ceilings are swept once per device. Not the user's, because
    # ceilings that are measured beside a test suite are too low; and the user's own profiles are no defaults here.
    cache = getattr(config, "cache", None)  # not with -p no:cacheprovider
    folder = str(cache.mkdir("perfport")) if cache else tempfile.mkdtemp(prefix="perfport-tests-")
    for environment in (os.environ, ENVIRONMENT):
        environment["XDG_CACHE_HOME"] = environment["XDG_CONFIG_HOME"] = folder
        environment["PYTHONPYCACHEPREFIX"] = f"{folder}/bytecode"  # hundreds of children start: compile modules once
        environment.pop("PYTHONDONTWRITEBYTECODE", None)
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # as in a shell's background: tests send it to children
        signal.signal(signal.SIGINT, signal.default_int_handler)
    config.option.loadscopereorder = False  # pytest-xdist: files begin in the order above, not by their tests' number
    # How long an example takes says what else the machine does.
    hypothesis.settings.register_profile("perfport", deadline=None)
    hypothesis.settings.load_profile("perfport")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    # A test that has parameters of its own under one of these names wants no device.
    marks = [mark.args[0] for mark in metafunc.definition.iter_markers("parametrize")]
    given = {name for names in marks for name in (names.split(", ") if isinstance(names, str) else names)}
    for name in (name for name in BACKENDS if name in metafunc.fixturenames and name not in given):
        ids = [info.id for info in healthy_devices() if info.backend in BACKENDS[name]]
        none = pytest.param(None, id="none", marks=pytest.mark.skip(reason=f"no working {name} device on this machine"))
        metafunc.parametrize(name, ids or [none], indirect=True, scope="session")


def _device(request: pytest.FixtureRequest) -> OpenDevice:
    return opened(request.param)


device = pytest.fixture(_device, name="device", scope="session")
opencl = pytest.fixture(_device, name="opencl", scope="session")
cuda = pytest.fixture(_device, name="cuda", scope="session")


@pytest.fixture(scope="session")
def opencl_infos() -> list[DeviceInfo]:
    """The working OpenCL devices."""
    found = [info for info in healthy_devices() if info.backend == "opencl"]
    if not found:
        pytest.skip("no working OpenCL device on this machine")
    return found


@pytest.fixture(scope="session")
def no_ceilings(opencl_infos: list[DeviceInfo], tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """An environment whose cache says that no device has ceilings: nothing is swept or probed."""
    folder = tmp_path_factory.mktemp("cache")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(folder))
        for info in opencl_infos:
            store(info, Ceilings(device=info.id, driver=info.driver, date="", entries={}))
    # A temporary folder of its own: locks of runs outside this session are not waited for.
    return {**ENVIRONMENT, "XDG_CACHE_HOME": str(folder), "TMPDIR": str(tmp_path_factory.mktemp("tmp"))}


Perfport = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture(scope="session")
def perfport() -> Perfport:
    """Run ``perfport`` as a child: ``perfport("list", "svm_rbf", env={...}, cwd=folder)``."""

    def call(
        *args: object, env: dict[str, str] | None = None, cwd: Path | None = None, timeout: float = 240
    ) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "perfport.cli", *map(str, args)]
        return subprocess.run(
            command, capture_output=True, text=True, timeout=timeout, check=False, env=env or ENVIRONMENT, cwd=cwd
        )

    return call


Main = Callable[..., tuple[int, str, str]]


@pytest.fixture
def main(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], request: pytest.FixtureRequest) -> Main:
    """Call the command line in this process, with the devices that the session has found."""

    def call(*args: object, discover: bool = True) -> tuple[int, str, str]:
        if discover:
            infos = request.getfixturevalue("opencl_infos")
            monkeypatch.setattr("perfport.machine.discovery.discover", lambda: infos)
        monkeypatch.setattr(sys, "argv", ["perfport", *map(str, args)])
        capsys.readouterr()
        with pytest.raises(SystemExit) as ended:
            cli.main()
            raise SystemExit(0)
        out, err = capsys.readouterr()
        return int(ended.value.code or 0), out, err

    return call
