"""Errors without a cluster, and the choice of the cluster to join."""

import asyncio
import socket
import sys
from pathlib import Path

import msgspec
import pytest

from everlog.actors import cluster
from everlog.actors.api import open_system
from everlog.actors.cluster import ray_address
from everlog.actors.cluster.ray_address import LocalCluster, address_to_join, cluster_file, local_cluster, running
from everlog.events import BadInput, ClusterError
from tests.soak.test_killed_processes import start


@pytest.fixture
def bare(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a folder, on a machine on which no cluster was started."""
    monkeypatch.setenv("RAY_TMPDIR", str(tmp_path / "ray"))
    for name in ("RAY_ADDRESS", "EVERLOG_RUNTIME", *ray_address.ENVIRONMENT):
        monkeypatch.delenv(name, raising=False)
    return tmp_path


def nobody() -> str:
    """Return an address on this machine without a server."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        return f"127.0.0.1:{server.getsockname()[1]}"


async def opened(folder: Path, runtime: str) -> str:
    async with open_system(folder, runtime=runtime) as system:
        return type(system.runtime).__name__


def keep(root: Path, address: str) -> None:
    cluster_file(root).write_bytes(msgspec.json.encode(LocalCluster(address, 1)))


def test_without_a_cluster_auto_is_this_process(bare: Path) -> None:
    """`auto` uses this process, even if an ended cluster left its record behind."""
    keep(bare, nobody())
    assert asyncio.run(opened(bare, "auto")) == "LocalRuntime"


def test_an_unknown_runtime_is_refused(bare: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An unknown runtime is refused, from an argument and from the environment."""
    with pytest.raises(BadInput, match="There is no runtime 'cloud'"):
        asyncio.run(opened(bare, "cloud"))
    monkeypatch.setenv("EVERLOG_RUNTIME", "Ray")
    with pytest.raises(BadInput, match="There is no runtime 'Ray'"):
        asyncio.run(opened(bare, ""))


def test_ray_that_is_not_installed(bare: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The runtime `ray` raises a ClusterError with instructions, and `auto` still works."""
    monkeypatch.setitem(sys.modules, "ray", None)
    for name in ("ray_runtime", "ray_api"):  # as if these modules had not been imported yet
        monkeypatch.delitem(sys.modules, f"everlog.actors.cluster.{name}", raising=False)
        monkeypatch.delattr(cluster, name, raising=False)
    with pytest.raises(ClusterError, match=r"^Ray cannot be imported .*: install it .*--runtime local"):
        asyncio.run(opened(bare, "ray"))
    assert asyncio.run(opened(bare, "auto")) == "LocalRuntime"


def test_a_cluster_address_that_does_not_answer(bare: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """If RAY_ADDRESS does not answer, no other cluster is joined or started."""
    address = nobody()
    monkeypatch.setenv("RAY_ADDRESS", address)
    assert address_to_join(bare) == address
    with pytest.raises(ClusterError, match=rf"^No Ray cluster answers at {address} \(RAY_ADDRESS\)\. Start it, clear"):
        asyncio.run(opened(bare, "ray"))


@pytest.mark.parametrize("said", [RuntimeError, ConnectionError, ValueError, OSError])
def test_a_cluster_of_another_version(bare: Path, monkeypatch: pytest.MonkeyPatch, said: type[Exception]) -> None:
    """Ray's error becomes one paragraph that names the versions and the way without Ray."""
    import ray

    from everlog.actors.cluster import ray_api

    def init(*_: object, **__: object) -> None:
        raise said("Version mismatch: The cluster was started with:\n    Ray: 1.0")

    monkeypatch.setattr(ray, "init", init)
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = f"127.0.0.1:{server.getsockname()[1]}"
        with pytest.raises(ClusterError, match=r"joined at .*: Version mismatch: .* This is Ray .*--runtime local"):
            ray_api.connect(str(bare), address)
    with pytest.raises(ClusterError, match="Ray could not be started on this machine: Version mismatch"):
        ray_api.connect(str(bare), "")


def test_which_cluster_is_meant(bare: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """RAY_ADDRESS takes precedence, then the store's own cluster, then the machine's; a cluster that does not answer is
    skipped.
    """
    monkeypatch.setattr(ray_address, "keeps_cluster", lambda *_: True)
    with socket.create_server(("127.0.0.1", 0)) as one, socket.create_server(("127.0.0.1", 0)) as two:
        first, second = (f"127.0.0.1:{server.getsockname()[1]}" for server in (one, two))
        assert running(bare) == address_to_join(bare) == ""
        (bare / "ray" / "ray").mkdir(parents=True)
        (bare / "ray" / "ray" / "ray_current_cluster").write_text(f"{first}\n")
        assert running(bare) == address_to_join(bare) == first
        keep(bare, second)
        assert running(bare) == address_to_join(bare) == second
        monkeypatch.setenv("RAY_ADDRESS", first)
        assert running(bare) == address_to_join(bare) == first
        monkeypatch.setenv("RAY_ADDRESS", "auto")
        assert running(bare) == address_to_join(bare) == second


@pytest.mark.parametrize("content", [b"", b"{}", b"\xff", b'{"address": 1, "pid": 2}', b"[]"])
def test_an_unreadable_cluster_record_counts_as_none(bare: Path, content: bytes) -> None:
    """An unreadable record of the cluster counts as no record."""
    cluster_file(bare).write_bytes(content)
    assert local_cluster(bare) is None
    assert running(bare) == ""


@pytest.mark.parametrize("address", ["", "localhost", ":1", "127.0.0.1:", "127.0.0.1:x", "127.0.0.1:99999"])
def test_an_invalid_address_does_not_answer(address: str) -> None:
    """No value of RAY_ADDRESS makes the check for a running cluster fail."""
    assert not ray_address.answers(address)


def test_a_daemon_that_cannot_read_its_store(bare: Path) -> None:
    """The daemon prints the reason without a traceback, and starts nothing."""
    (bare / "everlog.json").write_text("{}")
    keeper = start("-m", "everlog.actors.cluster.local_daemon", str(bare))
    out, err = keeper.communicate()
    assert (keeper.returncode, out) == (1, "")
    assert "everlog.json" in err
    assert "Traceback" not in err
