"""A cluster on this machine for the tests of a file, and an end at which nothing of it is left."""

import os
import select
from collections.abc import Iterator
from pathlib import Path

import pytest

from everlog.actors.cluster.ray_address import namespace, prepare

ENDS_MS = 30_000
"""A process that was told to end and lives so much longer is left over."""


def descendants(pid: int) -> dict[int, str]:
    """The processes that came from a process, by number, and what they are called."""
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
    """Wait until a process has ended, whoever's it is; False if it has not in that time."""
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
             if found["namespace"] == namespace(str(root.resolve()))]  # fmt: skip
    for name in sorted(names, key=lambda name: name != "supervisor"):
        try:
            ray.kill(ray.get_actor(name, namespace=namespace(str(root.resolve()))))
        except ValueError:  # it ended by itself meanwhile
            pass


ALIKE = (
    "test_what_is_heard_is_the_log",
    "test_settings_are_taken_at_every_opening",
    "test_settings_that_cannot_be",
    "test_a_deleted_agent_can_begin_anew",
    "test_a_summary_is_made_and_taken_back",
    "test_a_past_conversation_is_taken_in",
    "test_an_endpoint_that_refuses",
    "test_a_second_life_of_an_event_id",
    "test_a_function_of_a_module",
    "test_a_function_made_in_a_function",
    "test_a_name_that_is_taken_is_refused_at_the_door",
    "test_a_timer_without_a_time_is_refused",
    "test_a_function_that_edits_memory",
    "test_an_endpoint_that_fails_hurts_its_own_agent_only",
    "test_a_function_that_only_reads_is_run_again",
    "test_a_memory_is_changed_and_deleted_by_its_id",
    "test_a_memory_is_kept_once",
    "test_calls_of_one_reply_see_what_the_ones_before_did",
    "test_many_memories_are_kept_at_once",
    "test_nothing_is_kept_for_an_agent_that_is_not_there",
    "test_what_cannot_be_is_told_to_the_model",
    "test_a_person_keeps_amends_and_forgets",
    "test_a_change_that_is_sent_twice_counts_once",
    "test_edited_code_runs_in_an_agent_that_is_open",
    "test_what_a_function_raises_is_told",
    "test_an_idle_agent_is_let_go_of",
    "test_an_agent_at_work_is_not_let_go_of",
    "test_an_agent_that_does_not_exist",
)
"""Tests of the contract of which nothing depends on where an agent runs: under Ray they are asked in the long suite."""


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.get_closest_marker("ray") and getattr(item, "originalname", "") in ALIKE:
            item.add_marker(pytest.mark.long)


@pytest.fixture(scope="module")
def ray_cluster() -> Iterator[str]:
    """A running cluster that this process has joined; its address. At the end every process of it must be gone."""
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
    """The folder of a store whose actors end with the test."""
    yield tmp_path / "store"
    stop_actors(tmp_path / "store")
