"""The units and the container in `deploy/`: they start commands that exist, and restart them after a failure."""

import configparser
import json
import re
from pathlib import Path

import yaml

from everlog.interfaces.cli.command_parser import parser

ROOT = Path(__file__).resolve().parents[3]
UNIT = (ROOT / "deploy" / "everlog.service").read_text(encoding="utf-8")


def service(text: str = UNIT) -> dict[str, str]:
    """Return the settings of the service; of a setting that is given twice the last."""
    unit = configparser.ConfigParser(strict=False, interpolation=None, delimiters=("=",))
    unit.optionxform = str  # type: ignore[assignment,method-assign]
    unit.read_string(text)
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


def test_the_unit_of_the_server_starts_it_on_this_machine() -> None:
    """The server's unit runs `everlog serve` on the address of this machine, and may write to the store only."""
    found = service((ROOT / "deploy" / "everlog-serve.service").read_text(encoding="utf-8"))
    _, *words = found["ExecStart"].split()
    args = parser(words).parse_args(words)
    assert (args.command, args.host, args.json) == ("serve", "127.0.0.1", True)
    assert (found["ProtectSystem"], found["ReadWritePaths"]) == ("strict", "/var/lib/everlog")


def test_the_container_runs_the_server_as_a_user_without_rights() -> None:
    """The image runs a command that the parser takes, as another user than root; compose makes its root read-only."""
    lines = (ROOT / "deploy" / "Dockerfile").read_text(encoding="utf-8").splitlines()
    words = json.loads(next(line for line in lines if line.startswith("CMD ")).removeprefix("CMD "))
    assert parser(words).parse_args(words).command == "serve"
    assert lines.index("USER 10001") < next(at for at, line in enumerate(lines) if line.startswith("ENTRYPOINT"))
    service_of = yaml.safe_load((ROOT / "deploy" / "compose.yaml").read_text(encoding="utf-8"))["services"]["everlog"]
    assert parser(service_of["command"]).parse_args(service_of["command"]).hostname == ["agents.example.com"]
    assert service_of["read_only"] is True
    assert all(port.startswith("127.0.0.1:") for port in service_of["ports"])
