"""The process that runs a local cluster: why it ends is said, and the end of Ray is an error."""

import asyncio
import signal
from collections.abc import Iterator

import pytest

from everlog.actors.cluster import local_daemon
from everlog.events import ClusterError

LIVING = [(11, "gcs_server", True), (12, "raylet", True), (13, "python", True)]


def watched(monkeypatch: pytest.MonkeyPatch, *looks: list[tuple[int, str, bool]], number: int | None = None) -> str:
    """Return what `_until` says while the children are `looks`, one after the other; `number`: signal."""
    left = list(looks)

    def children(_pid: int) -> Iterator[tuple[int, str, bool]]:
        return iter(left.pop(0) if left[1:] else left[0])

    monkeypatch.setattr(local_daemon, "children", children)
    monkeypatch.setattr(local_daemon, "LOOK_S", 0.0)

    async def main() -> str:
        stopped: asyncio.Future[signal.Signals] = asyncio.get_running_loop().create_future()
        if number is not None:
            local_daemon._stop(stopped, signal.Signals(number))
            local_daemon._stop(stopped, signal.SIGINT)  # a second signal changes nothing
        return await local_daemon._until(stopped)

    return asyncio.run(main())


@pytest.mark.parametrize("number", local_daemon.SIGNALS)
def test_the_signal_that_stops_it_is_named(monkeypatch: pytest.MonkeyPatch, number: int) -> None:
    """The log says which signal came first, and the parent process, which is the likely sender in a supervisor."""
    said = watched(monkeypatch, LIVING, number=number)
    assert said.startswith(f"stopping: got {signal.Signals(number).name} (parent process: ")


def test_a_hangup_stops_it_as_the_others_do() -> None:
    """A terminal that is closed must not kill the cluster without a word."""
    assert set(local_daemon.SIGNALS) == {signal.SIGTERM, signal.SIGINT, signal.SIGHUP}


@pytest.mark.parametrize("after", [LIVING[1:], [(11, "gcs_server", False), *LIVING[1:]]], ids=["gone", "zombie"])
def test_a_ray_that_dies_is_an_error(monkeypatch: pytest.MonkeyPatch, after: list[tuple[int, str, bool]]) -> None:
    """A supervisor sees it by the exit code, and the error names the process of Ray that died."""
    with pytest.raises(ClusterError, match=r"A main process of Ray has died: gcs_server \(process 11\)"):
        watched(monkeypatch, LIVING, LIVING, after)
