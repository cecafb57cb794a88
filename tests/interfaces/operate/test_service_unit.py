"""`deploy/everlog.service`: systemd starts a command that exists, and restarts it as its exit codes ask for."""

import configparser
import re
from pathlib import Path

from everlog.interfaces.cli.command_parser import parser

ROOT = Path(__file__).resolve().parents[3]
UNIT = (ROOT / "deploy" / "everlog.service").read_text(encoding="utf-8")


def service() -> dict[str, str]:
    """Return the settings of the service; of a setting that is given twice the last."""
    unit = configparser.ConfigParser(strict=False, interpolation=None, delimiters=("=",))
    unit.optionxform = str  # type: ignore[assignment,method-assign]
    unit.read_string(UNIT)
    return dict(unit["Service"])


def test_the_unit_runs_the_cluster_in_the_foreground() -> None:
    """The command is one that the parser takes, and the process that systemd starts is the one that it stops."""
    found = service()
    program, *words = found["ExecStart"].split()
    assert program.endswith("/bin/everlog")
    args = parser(words).parse_args(words)
    assert (args.command, args.foreground) == ("up", True)
    assert (found["Restart"], found["KillSignal"]) == ("on-failure", "SIGTERM")


def test_commands_reach_the_cluster_of_the_unit() -> None:
    """Ray's sockets are in /tmp, so the unit has no /tmp of its own; its commands name the store that the unit has."""
    assert "PrivateTmp" not in service()
    stores = re.findall(r"EVERLOG_STORE=(\S+)", UNIT)
    assert len(stores) == 2 and len(set(stores)) == 1
