"""docs/cluster.md is correct as far as a test can check: its commands, names, limits and links exist."""

import re
import shlex
from pathlib import Path

from everlog.actors.hosting.metrics import COUNTERS, GAUGES, HISTOGRAMS
from everlog.actors.ports import agent_constants
from everlog.interfaces.cli.command_parser import COMMANDS, parser
from tests.docs.test_docs_examples import ROOT

PAGE = ROOT / "docs" / "cluster.md"
WHOLE = PAGE.read_text(encoding="utf-8")
TEXT = re.sub(r"<!--.*?-->", "", WHOLE, flags=re.DOTALL)


def typed() -> set[str]:
    """Return every `everlog` command line of the page, in a code block or between backticks."""
    blocks = "\n".join(re.findall(r"```sh\n(.*?)```", TEXT, re.DOTALL))
    lines = re.findall(r"^everlog (.*?)(?:  +#.*)?$", blocks, re.MULTILINE)
    return {*lines, *re.findall(r"`everlog ([^`]+)`", re.sub(r"```.*?```", "", TEXT, flags=re.DOTALL))}


def test_every_command_exists() -> None:
    """The parser accepts each command exactly as the page shows it."""
    commands = typed()
    assert len(commands) >= 6
    names = {command.name for command in COMMANDS}
    for command in commands:
        words = shlex.split(command)
        assert words[0] in names or " ".join(words[:2]) in names, command
        parser().parse_args(words)


def test_every_metric_is_named() -> None:
    """The page names every existing metric, and no other."""
    named = set(re.findall(r"`(everlog_\w+)`", TEXT))
    assert named == {*COUNTERS, *GAUGES, *HISTOGRAMS}


def test_the_limits_are_those_of_the_code() -> None:
    """A number in the table of limits is the constant that is enforced."""
    for number in (agent_constants.INBOX_MAX, agent_constants.ASKS_WAITING_MAX):
        assert f"| {number:,}" in TEXT
    assert f"with {agent_constants.ASKS_MAX} under way" in TEXT
    assert f"| {agent_constants.ACTIVATIONS_MAX} by the supervisor" in TEXT


def test_the_slots_are_those_of_the_cluster_file() -> None:
    """A worker of the sizing table has as many slots as the cluster files give to a worker."""
    slots = re.search(r"agent_slot: (\d+)", (ROOT / "ray_cluster.yaml").read_text(encoding="utf-8"))
    assert slots is not None
    assert f"| {slots[1]} |" in TEXT


def test_links_lead_somewhere() -> None:
    """Every file and heading to which the page links exists."""
    for file, _, heading in (link.partition("#") for link in re.findall(r"\]\(([^)]+)\)", TEXT)):
        target = PAGE.parent / file
        assert target.exists(), file
        if heading:
            headings = re.findall(r"^#+ (.*)$", Path(target).read_text(encoding="utf-8"), re.MULTILINE)
            assert heading in {text.lower().replace(" ", "-") for text in headings}, heading
