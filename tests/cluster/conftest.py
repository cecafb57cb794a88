"""A Ray cluster on this machine for all tests that can share one, with a check that no process of it is left at the
end.
"""

import os
import select
from collections.abc import Iterator
from pathlib import Path

import pytest

from everlog.actors.cluster.ray_address import namespace, prepare
from everlog.store import store_address
from tests.contract.agent_contract import AgentContract

ENDS_MS = 30_000
"""Milliseconds after which a process that was told to end counts as left over."""


def descendants(pid: int) -> dict[int, str]:
    """Return the descendants of a process: their names by process id."""
    parents: dict[int, tuple[int, str]] = {}
    for folder in Path("/proc").iterdir():
        try:
            name, _, rest = (folder / "stat").read_text().partition("(")[2].rpartition(")")
        except (OSError, ValueError):
            continue
        if folder.name.isdecimal():
            parents[int(folder.name)] = (int(rest.split()[1]), name)
    found: dict[int, str] = {}
    while new := {child: name for child, (parent, name) in parents.items() if child not in found
                  and (parent == pid or parent in found)}:  # fmt: skip
        found |= new
    return found


def ends(pid: int, milliseconds: int = ENDS_MS) -> bool:
    """Wait until a process of any owner has ended. Return False if it has not ended in that time."""
    try:
        file = os.pidfd_open(pid)
    except ProcessLookupError:
        return True
    try:
        poll = select.poll()
        poll.register(file, select.POLLIN)
        return bool(poll.poll(milliseconds))
    finally:
        os.close(file)


def stop_actors(root: Path) -> None:
    """Kill every actor of a store, the supervisor before the hosts that it would start again."""
    import ray

    names = [found["name"] for found in ray.util.list_named_actors(all_namespaces=True)
             if found["namespace"] == namespace(store_address(root))]  # fmt: skip
    for name in sorted(names, key=lambda name: name != "supervisor"):
        try:
            ray.kill(ray.get_actor(name, namespace=namespace(store_address(root))))
        except ValueError:  # the actor has ended meanwhile
            pass


ORDINARY = (
    "test_a_new_agent_is_created_and_answers",
    "test_everything_is_there_after_the_host_died",
)
"""Tests of the contract that run under Ray in the ordinary suite. The others run with agents in this process there, and
under Ray in the deep suite.
"""


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Leave most of the contract to the deep suite, and run the tests of this folder first, ordered by their need of
    Ray.

    The shared cluster ends before the next test of another folder, and tests of this folder that expect no cluster run
    before it begins.
    """
    for item in items:
        is_of_contract = issubclass(getattr(item, "cls", None) or object, AgentContract)
        if item.get_closest_marker("ray") and is_of_contract and getattr(item, "originalname", "") not in ORDINARY:
            item.add_marker(pytest.mark.long)
            item.add_marker(pytest.mark.cluster)
    items.sort(key=_place)


def _place(item: pytest.Item) -> int:
    """Return the position of a test: 0 without a cluster, 1 with a cluster of its own, 2 with the shared cluster, 3
    outside this folder.
    """
    if not item.path.is_relative_to(Path(__file__).parent):
        return 3
    if not item.get_closest_marker("ray"):
        return 0
    return 2 if "ray_cluster" in getattr(item, "fixturenames", ()) else 1


@pytest.fixture(scope="package")
def ray_cluster() -> Iterator[str]:
    """Yield the address of a running cluster that this process has joined. At the end every process of it must be
    gone.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RAY_AUTH_MODE", "disabled")
        patch.delenv("RAY_ADDRESS", raising=False)
        prepare(Path("tests"), "")
        import ray

        from everlog.actors.cluster import ray_api

        before = descendants(os.getpid())
        ray_api.connect("tests", "")
        yield str(ray.get_runtime_context().gcs_address)
        left = {pid: name for pid, name in descendants(os.getpid()).items() if pid not in before}
        ray.shutdown()
        stayed = {pid: name for pid, name in left.items() if not ends(pid)}
        assert not stayed, f"processes of Ray that were left over: {stayed}"


@pytest.fixture
def folder(ray_cluster: str, tmp_path: Path) -> Iterator[Path]:
    """Yield the folder of a store; at the end its actors are killed."""
    yield tmp_path / "store"
    stop_actors(tmp_path / "store")
