"""Guards that hold in every ordinary test, and the fixtures that many tests share.

An ordinary test starts no Ray, never sleeps and connects only to this machine. A test marked `long` may do all three;
one marked `ray` may start Ray (and then its nodes connect to each other at any address they have).
"""

import gc
import ipaddress
import os
import signal
import socket
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support import derived_states, engines, memory_disk, parts, process_groups, seeds

ROOT = Path(__file__).resolve().parent.parent
ORDINARY = "not long and not browser"
"""Marks that pyproject.toml asks for: those of the ordinary suite."""
OURS = ("everlog", "events", "store", "projections", "actors", "interfaces", "tests", "bench")

if sys.dont_write_bytecode:  # PYTHONDONTWRITEBYTECODE: each process that a test starts would compile all of everlog
    sys.dont_write_bytecode = False
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    sys.pycache_prefix = os.environ["PYTHONPYCACHEPREFIX"] = str(ROOT / ".pytest_cache" / "bytecode")
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # a suite in the background: its children would not heed Ctrl-C
    signal.signal(signal.SIGINT, signal.default_int_handler)


def is_ours(filename: str) -> bool:
    """Return True if a source file belongs to this repository, and not to a virtual environment inside the
    repository.
    """
    path = Path(filename)
    return path.is_relative_to(ROOT) and path.relative_to(ROOT).parts[0] in OURS


def is_loopback(host: object) -> bool:
    """Return True if a host as given to `connect` or `getaddrinfo` is this machine."""
    if host is None or host in ("", b"", "localhost", b"localhost"):
        return True
    try:
        return ipaddress.ip_address(host.decode() if isinstance(host, bytes) else str(host)).is_loopback
    except ValueError:
        return False


def exempt(request: pytest.FixtureRequest, *markers: str) -> bool:
    return any(request.node.get_closest_marker(marker) for marker in markers)


@pytest.fixture(autouse=True)
def no_sleeping(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Make `time.sleep` an error if this repository's code calls it; libraries (for example subprocess) may sleep."""
    if exempt(request, "long", "ray"):
        return
    real_sleep = time.sleep

    def sleep(seconds: float) -> None:
        if is_ours(sys._getframe(1).f_code.co_filename):
            pytest.fail("time.sleep in an ordinary test: take a Clock argument, or wait for the event itself")
        real_sleep(seconds)

    monkeypatch.setattr(time, "sleep", sleep)


@pytest.fixture(autouse=True)
def no_network(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Make sockets reach only this machine; a test that needs an endpoint starts its own on 127.0.0.1."""
    if exempt(request, "long", "ray"):
        return

    def guarded(name: str, host_of):
        real = getattr(socket if name == "getaddrinfo" else socket.socket, name)

        def call(*args, **kwargs):
            host = host_of(*args)
            if not is_loopback(host):
                pytest.fail(f"the network was asked for {host!r}: serve it on 127.0.0.1 inside the test")
            return real(*args, **kwargs)

        return call

    def host_of_address(sock: socket.socket, address: object) -> object:
        return address[0] if sock.family in (socket.AF_INET, socket.AF_INET6) else None

    for name in ("connect", "connect_ex"):
        monkeypatch.setattr(socket.socket, name, guarded(name, host_of_address))
    monkeypatch.setattr(socket, "getaddrinfo", guarded("getaddrinfo", lambda host, *_: host))


def refuse_ray(monkeypatch: pytest.MonkeyPatch) -> None:
    def init(*_args: object, **_kwargs: object) -> None:
        pytest.fail("ray.init in an ordinary test: use the in-process host, or mark the test `ray`")

    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    if "ray" in sys.modules:
        monkeypatch.setattr(sys.modules["ray"], "init", init)


@pytest.fixture(autouse=True)
def no_ray(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Prevent ordinary tests from starting or joining a Ray cluster. The check itself does not import Ray."""
    if exempt(request, "long", "ray"):
        yield
        return

    monkeypatch.setenv("EVERLOG_RUNTIME", "local")  # a cluster may run on this machine: none of these tests joins it
    monkeypatch.setenv("EVERLOG_CONFIG", "")  # nor do they read the defaults of the user who runs them
    monkeypatch.setenv("RAY_TMPDIR", "/nowhere")  # nor does it look for one
    refuse_ray(monkeypatch)
    yield
    ray = sys.modules.get("ray")  # a test may have been the first to import it
    if ray is not None and ray.is_initialized():
        ray.shutdown()
        pytest.fail("Ray was running after an ordinary test: mark the test `ray`")


@pytest.fixture(scope="session")
def data_dir() -> Path:
    """Return the folder of public data sets, which are not part of the project; skip the test if the folder is
    missing.
    """
    path = Path(os.environ.get("EVERLOG_DATA") or ROOT.parent / "shared" / "data")
    if not path.is_dir():
        pytest.skip(f"no data sets at {path}: set EVERLOG_DATA to the folder that has them")
    return path


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option with which the tests of the command line run against a server."""
    parser.addoption("--served", action="store_true", help="send the commands of tests/interfaces to a server")


def pytest_configure(config: pytest.Config) -> None:
    """Register the parts of the deep suite, and fix the text from which all processes of the run draw their seeds.

    The ordinary suite puts its folders on a disk in memory, if there is one: it makes thousands of small stores, and
    what a sync costs is no question of its tests. The deep suite uses a real disk.
    """
    for name, about in parts.PARTS.items():
        config.addinivalue_line("markers", f"{name}: a part of the deep suite: {about}.")
    os.environ[seeds.VARIABLE] = seeds.origin()
    if config.getoption("markexpr") == ORDINARY and memory_disk.has_room():
        os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", str(memory_disk.FOLDER))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print how to draw the same seeds again."""
    if terminalreporter.stats.get("failed"):
        terminalreporter.write_line(f"the same seeds again: {seeds.VARIABLE}={seeds.origin()!r}")


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Give all tests that start Ray to one process of the run, because two Rays would disturb each other; and all tests
    that share a fixture of their module or folder, because it would be made again in each process.
    """
    for item in items:
        parts.check(item)
        if item.get_closest_marker("ray"):
            item.add_marker(pytest.mark.xdist_group("ray"))
        elif not item.get_closest_marker("xdist_group") and (shared := shared_by(item)):
            item.add_marker(pytest.mark.xdist_group(shared))
    process_groups.tell(config, items)


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    """Ask a process for its groups before it starts."""
    process_groups.ask(node)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Return the scheduler of the run."""
    return process_groups.scheduler(config, log)


def pytest_collection_finish() -> None:
    """Exclude modules and tests from garbage collections: many tests collect, and each would traverse all of them."""
    gc.collect()
    gc.freeze()


def pytest_sessionfinish() -> None:
    """Undo `gc.freeze`, so that the process ends normally: extension modules look for remaining objects at exit."""
    gc.unfreeze()


def shared_by(item: pytest.Item) -> str:
    """Return the widest place with a fixture that this test shares with others; empty if there is none."""
    found = item._fixtureinfo.name2fixturedefs.values() if isinstance(item, pytest.Function) else ()
    return min((used.baseid for *_, used in found if used.scope in {"module", "package"}), key=len, default="")


@pytest.fixture(autouse=True, scope="session")
def lent_databases(pytestconfig: pytest.Config) -> Iterator[None]:
    """Let the engines of the ordinary suite borrow their databases, and derive the states of the same records once."""
    if pytestconfig.getoption("markexpr") != ORDINARY:
        yield
        return
    with engines.lent(), derived_states.remembered():
        yield


@pytest.fixture(autouse=True, scope="session")
def every_system(pytestconfig: pytest.Config, lent_databases: None) -> Iterator[list]:
    """Collect the Systems that tests make in this process, one for each store of a test. The ordinary suite ends by
    verifying some of their agents.
    """
    from everlog.actors.agent import local_system
    from tests.support.verify_every_agent import MADE_BY, made_for, verify_all

    made: list[local_system.LocalSystem] = []
    known: set[tuple[object, str]] = set()
    begin = local_system.LocalSystem.__init__

    def remembered(self: local_system.LocalSystem, *args, **kwargs) -> None:
        begin(self, *args, **kwargs)
        setattr(self, MADE_BY, os.environ.get("PYTEST_CURRENT_TEST", "").rpartition(" ")[0])
        if made_for(self) not in known:  # a test of the command line makes hundreds: each would stay to the end
            known.add(made_for(self))
            made.append(self)

    local_system.LocalSystem.__init__ = remembered
    yield made
    local_system.LocalSystem.__init__ = begin
    if pytestconfig.getoption("markexpr") == ORDINARY and not pytestconfig.getoption("served"):
        verify_all(made)


@pytest.fixture
def simulated_worlds(every_system: list) -> Iterator[None]:
    """Remove the systems of a test's simulated worlds from the check at the end of the suite: each world checks its
    own.
    """
    made = len(every_system)
    yield
    del every_system[made:]
