"""`everlog down`, while a cluster starts whose `everlog up` was killed, and with a record that is no file."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from everlog.actors.cluster.ray_address import local_cluster
from tests.support.cli.command_line import Line

MODULE = "everlog.actors.cluster.local_daemon"
WAITING = "import sys; print('waiting', flush=True); sys.stdin.read()"


def test_a_daemon_that_has_not_recorded_itself_is_stopped(cli: Line) -> None:
    """Its process is found by its command line, and only the one of this store."""
    cli.ok("create", "sam")
    other = cli.root.parent / "other"
    daemons = [
        subprocess.Popen(
            [sys.executable, "-c", WAITING, MODULE, str(root)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        for root in (cli.root, other)
    ]
    try:
        for daemon in daemons:
            assert daemon.stdout is not None and daemon.stdout.readline() == b"waiting\n"
        assert "Ray is stopped." in cli.ok("down")
        assert daemons[0].wait(10) != 0
        assert daemons[1].poll() is None
        assert "No Ray of `everlog up` is running" in cli.fails("down")
    finally:
        for daemon in daemons:
            daemon.kill()
            daemon.communicate()


@pytest.mark.parametrize("make", [os.mkfifo, lambda path: path.symlink_to("/dev/zero"), os.mkdir])
def test_a_record_of_a_cluster_that_is_no_file_is_no_cluster(cli: Line, make: Callable[[Path], None]) -> None:
    """A pipe, a device and a folder in place of `cluster.json` are not waited for: no cluster is running."""
    cli.ok("create", "sam")
    make(cli.root / "cluster.json")
    assert local_cluster(cli.root) is None
    assert "No Ray of `everlog up` is running" in cli.fails("down")
