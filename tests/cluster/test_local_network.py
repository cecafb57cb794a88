"""`everlog up` is closed to the network and to other users of the machine."""

import os
import stat
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from everlog.actors.cluster.ray_address import is_loopback, local_cluster
from tests.cluster.conftest import descendants, ends
from tests.support.cluster.listening_sockets import listening
from tests.support.store.open_paths import open_paths

ROOT = Path(__file__).parents[2]
pytestmark = pytest.mark.ray

Everlog = Callable[..., str]


@pytest.fixture
def everlog(tmp_path: Path) -> Iterator[Everlog]:
    """Yield a function that runs a command over one store under umask 0; at the end the cluster is down."""
    home = tmp_path / "home"
    kept = {key: value for key, value in os.environ.items() if not key.startswith(("RAY_", "EVERLOG_"))}
    given = {**kept, "EVERLOG_STORE": str(tmp_path / "store"), "PYTHONPATH": str(ROOT), "HOME": str(home)}

    def run(*words: str) -> str:
        done = subprocess.run(
            [sys.executable, "-m", "everlog.interfaces.cli.main", *words], cwd=ROOT, env=given, text=True,
            capture_output=True, check=False, timeout=120, umask=0,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        return done.stdout

    home.mkdir()
    try:
        yield run
    finally:
        known = local_cluster(tmp_path / "store")
        family = {} if known is None else descendants(known.pid)
        if known is not None:
            run("down")
        left = [name for pid, name in family.items() if not ends(pid)]
        assert not left, left


@pytest.mark.long
@pytest.mark.cluster
def test_a_cluster_of_up_is_private(everlog: Everlog, tmp_path: Path) -> None:
    """No process of the cluster, hosts and archive included, listens at an address that other machines reach; every
    path of the store and Ray's token are closed to other users under umask 0, also a token that was open before.
    """
    token = tmp_path / "home" / ".ray" / "auth_token"
    token.parent.mkdir()
    token.write_text("0123456789abcdef" * 4)
    token.chmod(0o644)
    everlog("send", "sam", "Hi, my name is Chad and I sail.")  # before: a host that loads an agent asks the archive
    everlog("up")
    everlog("create", "ann", "--placement", "shared")
    everlog("send", "ann", "Hello")
    everlog("send", "sam", "What did I say about whales?")  # not in the conversation: the archive is searched too
    known = local_cluster(tmp_path / "store")
    assert known is not None
    family = {known.pid: "daemon", **descendants(known.pid)}
    found = {(family[pid], address) for pid in family for address in listening(pid)}
    assert {"gcs_server", "raylet"} < {name for name, _ in found}
    assert [name for name in family.values() if name.startswith("ray::Archive")]
    assert {(name, address) for name, address in found if not is_loopback(address)} == set()
    assert stat.S_IMODE(token.stat().st_mode) == 0o600
    assert open_paths(tmp_path / "store") == {}
