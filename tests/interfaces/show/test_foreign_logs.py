"""Logs that another everlog, or another machine, wrote: commands say what they lack, and end in no traceback."""

from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from everlog.events import GENESIS, Record, extend
from everlog.store.backup.export_file import ExportReader, ExportWriter
from tests.support.cli.command_line import Line, says


@pytest.fixture
def foreign(cli: Line, tmp_path: Path, every_system: list) -> Iterator["Foreign"]:
    """Yield an agent whose log is about to be changed: it must not be verified when the suite ends."""
    made = len(every_system)
    yield Foreign(cli, tmp_path)
    del every_system[made:]


class Foreign:
    """An agent whose records are changed on the way into another store, with a right chain and checksum."""

    def __init__(self, cli: Line, tmp_path: Path) -> None:
        self.cli, self.path = cli, tmp_path / "sam.everlog"
        cli.script.answers += [says("Hello."), says("Hello again.")]
        cli.ok("send", "sam", "I live in Oslo.")
        cli.ok("export", "sam", str(self.path))
        cli.root = tmp_path / "other"
        cli.ok("create", "ann")

    def changed(self, kind: str, **change: object) -> Line:
        """Change the last record of a type, and restore the agent into the other store."""
        export = ExportReader(self.path)
        records, contents = list(export.records()), export.contents
        export.close()
        at = max(index for index, record in enumerate(records) if record.type == kind)
        records[at] = self._new(records[at], change)
        chain = GENESIS
        for record in records:
            chain = extend(chain, record)
        stream = msgspec.structs.replace(contents.streams[0], chain=chain.hex())
        with self.path.open("wb") as file, ExportWriter(file) as writer:
            writer.write(records)
            writer.finish(msgspec.structs.replace(contents, streams=[stream]))
        self.cli.ok("restore", str(self.path))
        return self.cli

    def _new(self, record: Record, change: dict[str, object]) -> Record:
        if "version" in change:
            return msgspec.structs.replace(record, **change)
        payload = {**msgspec.json.decode(record.payload), **change}
        return msgspec.structs.replace(record, payload=msgspec.json.encode(payload).decode())


def test_a_reply_of_a_newer_everlog_is_passed_over(foreign: Foreign) -> None:
    """A `model_reply` of an unknown version is no call that can be checked, and is no reason to fail."""
    cli = foreign.changed("model_reply", version=99)
    for words in (["events", "sam"], ["pressure", "sam"], ["context", "sam"], ["send", "sam", "Hi"]):
        cli.ok(*words)
    code, _, err = cli("verify", "sam")
    assert code in (0, 1) and "Traceback" not in err


def test_a_configuration_of_a_newer_everlog_is_named(foreign: Foreign) -> None:
    """An agent that a newer everlog configured is refused with the seq, and its events can still be read."""
    cli = foreign.changed("agent_configured", version=99)
    for words in (["pressure", "sam"], ["context", "sam"], ["send", "sam", "Hi"]):
        assert "was configured by a newer everlog, at seq 2. Use that everlog." in cli.fails(*words)
    assert "user_message" in cli.ok("events", "sam")


def test_a_time_zone_that_this_machine_does_not_have_is_named(foreign: Foreign) -> None:
    """Each command that needs the agent's time zone says which is missing, and the cure in the message works."""
    cli = foreign.changed("agent_configured", zone="Mars/Olympus")
    for words in (["pressure", "sam"], ["context", "sam"], ["search", "sam", "Oslo", "--words"], ["send", "sam", "Hi"]):
        assert "There is no time zone 'Mars/Olympus' on this machine." in cli.fails(*words)
    cli.ok("send", "sam", "Hi", "--zone", "UTC")
    for words in (["pressure", "sam"], ["context", "sam"], ["search", "sam", "Oslo", "--words"], ["send", "sam", "Hi"]):
        cli.ok(*words)
