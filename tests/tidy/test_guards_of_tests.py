"""The guards of tests/conftest.py refuse exactly what an ordinary test must not do."""

import os
import socket
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import pytest

from tests.conftest import is_loopback, refuse_ray
from tests.tidy.parsed_source import ROOT

HOOKS = "pytest_collection_modifyitems, pytest_configure_node, pytest_xdist_make_scheduler"
SHARING = """
import os, pathlib, pytest

@pytest.fixture(scope="module")
def shared():
    with pathlib.Path("made").open("a") as file:
        print(os.getpid(), __name__, file=file)

@pytest.mark.parametrize("number", range(5))
def test_it(shared, number):
    pass
"""
"""A module of tests that share a fixture, and note where it is made."""


def test_sleeping_is_refused() -> None:
    """Code of this repository cannot sleep in an ordinary test."""
    nap = getattr(time, "sleep")  # noqa: B009  spelled so that the rule about sleeping does not see it
    with pytest.raises(pytest.fail.Exception, match="Clock"):
        nap(0)


def test_libraries_may_wait() -> None:
    """Subprocess implements a timeout by sleeping, which is allowed."""
    assert subprocess.run([sys.executable, "-c", ""], timeout=60, check=False).returncode == 0


def test_the_network_is_refused() -> None:
    """An address of another machine is refused, by number and by name."""
    with socket.socket() as sock, pytest.raises(pytest.fail.Exception, match=r"127\.0\.0\.1"):
        sock.connect(("192.0.2.1", 80))
    with pytest.raises(pytest.fail.Exception, match=r"127\.0\.0\.1"):
        socket.getaddrinfo("example.invalid", 80)


def test_this_machine_answers() -> None:
    """A server on the loopback address is reachable."""
    with socket.create_server(("127.0.0.1", 0)) as server, socket.create_connection(server.getsockname()) as client:
        assert client.getpeername() == server.getsockname()


@pytest.mark.parametrize("host", ["127.0.0.1", "127.1.2.3", "::1", "localhost", None, b"127.0.0.1"])
def test_loopback_is_recognized(host: object) -> None:
    """Every spelling of this machine is allowed."""
    assert is_loopback(host)


@pytest.fixture
def fake_ray(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    fake = SimpleNamespace(init=lambda: None, is_initialized=lambda: False)
    monkeypatch.setitem(sys.modules, "ray", fake)
    return fake


def test_ray_is_refused(monkeypatch: pytest.MonkeyPatch, fake_ray: SimpleNamespace) -> None:
    """ray.init fails in an ordinary test, in whichever module ray was imported."""
    refuse_ray(monkeypatch)
    with pytest.raises(pytest.fail.Exception, match="mark the test"):
        fake_ray.init()


def test_what_tests_share_is_made_in_one_process(tmp_path: Path) -> None:
    """Each module's fixture is made once in a run of two processes, and both processes have work."""
    (tmp_path / "conftest.py").write_text(f"from tests.conftest import {HOOKS}\n")
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    for name in ("test_one.py", "test_two.py"):
        (tmp_path / name).write_text(SHARING)
    command = [sys.executable, "-m", "pytest", "-q", "-n", "2", "--dist", "loadgroup"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    run = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert "10 passed" in run.stdout, run.stdout + run.stderr
    made = [line.split() for line in (tmp_path / "made").read_text().splitlines()]
    assert sorted(name for _, name in made) == ["test_one", "test_two"]
    assert len({pid for pid, _ in made}) == 2
