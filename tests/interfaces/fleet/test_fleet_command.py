"""`everlog fleet`: it sends messages to many agents at once, and reads the outcome of each message from the logs."""

import asyncio
import signal
from collections.abc import AsyncIterator, Iterator, Sequence
from pathlib import Path

import pytest

from everlog.actors.ports.effects import ModelResponse
from everlog.actors.reply import SendOutcome
from everlog.events import (
    BadInput,
    Event,
    MessageSent,
    ModelError,
    ModelFailed,
    TurnAbandoned,
    UsageError,
    UserMessage,
    draft,
    uuid7,
)
from everlog.interfaces.cli.main import main
from everlog.interfaces.fleet import fleet_command
from everlog.interfaces.fleet import load_generator as load
from everlog.projections import InputOutcome, input_outcomes
from everlog.store import FileStore, Log, MemoryStore
from tests.support.cli.command_line import START, HandClock, Line, Script, completion, says


def run(cli: Line, *argv: str) -> dict:
    return cli.json("fleet", "--runtime", "local", "--shards", "2", *argv)


def test_every_agent_answers_every_message(cli: Line) -> None:
    """Each agent gets its messages in order, and the report counts them from the logs."""
    found = run(cli, "--agents", "5", "--messages", "3")
    assert (found["agents"], found["messages"], found["acknowledged"]) == (5, 15, 15)
    assert (found["lost"], found["doubled"], found["unanswered"], found["errors"]) == (0, 0, 0, [])
    assert found["model_calls"] == 15
    assert 0 < found["latency_ms"]["p50"] <= found["latency_ms"]["p95"] <= found["latency_ms"]["p99"]
    assert found["messages_per_s"] > 0
    assert found["bytes_per_message"] > 0
    said = [event["text"] for event in cli.lines("events", "fleet-00002", "--type", "user_message")]
    assert said == fleet_command.lines(None)[3:6]


def test_existing_agents_continue(cli: Line) -> None:
    """A second run uses the same agents, in their existing placement."""
    run(cli, "--agents", "2", "--messages", "1", "--placement", "dedicated")
    found = run(cli, "--agents", "3", "--messages", "1")
    assert (found["messages"], found["lost"]) == (3, 0)
    assert len(cli.lines("events", "fleet-00001", "--type", "user_message")) == 2
    assert sorted(FileStore(cli.root, cli.clock.now).partition_of(f"fleet-0000{n}")[:6] for n in (1, 2, 3)) == [
        "agent-",
        "agent-",
        "shard-",
    ]


def test_the_report_is_for_people(cli: Line) -> None:
    """Without --json the report has one aligned line for each figure, and the next command to run."""
    code, out, err = cli("fleet", "--agents", "2", "--messages", "2", "--runtime", "local")
    assert code == 0, err
    rows = out.split("\n\n")[0].splitlines()
    assert len({row.index(":") for row in rows}) == 1
    assert any(row.strip().startswith("lost: 0 of 4 acknowledged") for row in rows)
    assert "chat fleet-00001" in out.splitlines()[-1]
    assert "4 of 4 messages" in err


def test_a_model_that_fails_is_an_error_and_loses_nothing(cli: Line) -> None:
    """The exit code is 1, the error is counted by its kind with an example, and the message is in the log."""
    cli.script.answers = [ModelError("The endpoint is down.", kind="connection"), says("Yes.")]
    code, out, _ = cli("fleet", "--agents", "1", "--messages", "2", "--runtime", "local")
    assert code == 1
    assert "errors: 1 ModelError: connection, for example: The endpoint is down." in out
    assert "lost: 0 of 2 acknowledged" in out


def test_a_turn_without_words_is_reported(cli: Line) -> None:
    """A turn that ends without a message loses no input, but counts as not answered."""
    cli.script.answers = [completion(("core_memory_append", {"name": "human", "content": "Sails."}))]
    found = run(cli, "--agents", "1", "--messages", "1")
    assert (found["lost"], found["unanswered"], found["acted"]) == (0, 1, 1)


def test_memory_that_is_searched_is_counted(cli: Line) -> None:
    """The report counts the messages whose turn searched memory, because a search costs more than talk."""
    query = {"query": "boat", "page": 0, "request_heartbeat": True}
    cli.script.answers = [completion(("conversation_search", query)), says("1964.")]
    found = run(cli, "--agents", "1", "--messages", "1")
    assert (found["searched"], found["acted"], found["model_calls"]) == (1, 1, 2)


class Interrupting(Script):
    """A model that raises Ctrl-C after a number of answers."""

    def __init__(self, after: int) -> None:
        super().__init__([])
        self._after = after

    async def ask(self, request: bytes, **_: object) -> ModelResponse:
        if len(self.asked) == self._after:
            signal.raise_signal(signal.SIGINT)
        return await super().ask(request)


@pytest.fixture
def interruptible() -> Iterator[None]:
    """Restore the default handler of SIGINT: a process that was started in the background ignores Ctrl-C."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("interruptible")
def test_ctrl_c_ends_it_with_a_report(cli: Line) -> None:
    """The messages answered so far are reported and looked up; the exit code is 130."""
    cli.script = Interrupting(after=6)
    code, out, err = cli("fleet", "--agents", "2", "--messages", "50", "--runtime", "local")
    assert code == 130
    assert "lost: 0 of" in out
    assert "interrupted" in err
    assert 6 <= len(cli.script.asked) < 100


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("talk.txt", b"Hello\n\n  Good bye  \n", ["Hello", "Good bye"]),
        (
            "talk.jsonl",
            b"""{"role":"user","content":"Hello","time":"2024-01-01T10:00:00Z"}
            {"role":"assistant","content":"Hi","time":"2024-01-01T10:00:01Z"}
            """,
            ["Hello"],
        ),
    ],
)
def test_words_come_from_a_file(tmp_path: Path, name: str, content: bytes, said: list[str]) -> None:
    """A text file has one message on each line; of a conversation file, the user's messages are used."""
    (tmp_path / name).write_bytes(content)
    assert fleet_command.lines(str(tmp_path / name)) == said


@pytest.mark.parametrize(
    ("content", "fault"),
    [(b"", "has no messages"), (b"\n \n", "has no messages"), (b"Hi\nH\xff\n", "line 2: it is not")],
)
def test_a_bad_file_is_named_before_anything_is_said(cli: Line, tmp_path: Path, content: bytes, fault: str) -> None:
    """The error names the file, and no store is made."""
    (tmp_path / "talk.txt").write_bytes(content)
    assert fault in cli.fails("fleet", "--file", str(tmp_path / "talk.txt"))
    assert not cli.root.exists()


@pytest.mark.parametrize("wrong", [["--agents", "0"], ["--messages", "x"], ["--at-once", "-1"], ["--placement", "far"]])
def test_what_cannot_be_is_bad_usage(cli: Line, wrong: list[str]) -> None:
    """Impossible arguments exit with code 2."""
    assert cli("fleet", *wrong)[0] == 2


def test_everyday_words_are_short_and_differ() -> None:
    """The wheel contains about sixty short lines that a person would type."""
    lines = fleet_command.lines(None)
    assert len(lines) == len(set(lines)) >= 50
    assert all(0 < len(line) < 120 for line in lines)


class Refused(UsageError):
    """Full."""

    retry_after_s = 2.5


class Answering:
    """A system that raises the given errors: each message takes the next error, and then none is raised."""

    def __init__(self, *errors: UsageError) -> None:
        self.errors = list(errors)
        self.calls: list[list[str]] = []

    async def send_many(self, said: Sequence[tuple[str, str]]) -> AsyncIterator[SendOutcome]:
        self.calls.append([name for name, _ in said])
        for name, _ in said:
            error = self.errors.pop(0) if self.errors else None
            yield SendOutcome(name, f"id-{name}", (), None, error)


async def loaded(
    system: Answering, agents: int, messages: int, at_once: int = 10
) -> tuple[load.LoadTally, list[float]]:
    slept: list[float] = []

    async def sleep(seconds: float) -> None:
        slept.append(seconds)

    names = [f"a{number}" for number in range(agents)]
    run = load.LoadRun(system, names, ["Hi"], messages, at_once=at_once, now=HandClock().now, sleep=sleep)
    return await run.run(), slept


def test_a_refused_message_is_sent_again_after_the_requested_wait() -> None:
    """A refused message is sent again after the wait that the refusal names, and is no error if it is accepted in the
    end.
    """
    tally, slept = asyncio.run(loaded(Answering(Refused("full"), Refused("full")), 1, 2))
    assert (tally.answered, tally.retried, tally.faults) == (2, 2, {})
    assert slept == [2.5, 2.5]


def test_a_message_that_is_refused_too_often_is_reported() -> None:
    """After the allowed retries a message counts as refused, and the agent continues with its next message."""
    tally, _ = asyncio.run(loaded(Answering(*[Refused("full")] * (load.RETRIES_MAX + 1)), 1, 2))
    assert (tally.answered, tally.retried) == (1, load.RETRIES_MAX)
    assert tally.faults == {"Refused": load.ErrorTally(1, "full", refused=True)}


def test_no_more_is_under_way_than_allowed() -> None:
    """`at_once` limits the number of unanswered messages, and every agent gets its turns."""
    system = Answering()
    tally, _ = asyncio.run(loaded(system, 7, 2, at_once=3))
    assert tally.answered == 14
    assert max(map(len, system.calls)) == 3
    assert sorted(name for call in system.calls for name in call) == sorted([f"a{n}" for n in range(7)] * 2)


def test_an_error_that_ends_everything_is_raised() -> None:
    """If a whole group fails, the error is raised, and no message waits for ever."""

    class Broken(Answering):
        async def send_many(self, said: Sequence[tuple[str, str]]) -> AsyncIterator[SendOutcome]:
            raise BadInput("No.")
            yield

    with pytest.raises(BadInput, match="No"):
        asyncio.run(loaded(Broken(), 2, 1))


SAID, SAID_TWICE, FAILED, GIVEN_UP, HANGING, GONE = (uuid7(START, number) for number in range(6))


def log_of(*turns: tuple[str, Event | None]) -> Log:
    """Return the log of one agent from the id of each turn's input and the event that ended the turn, if any."""
    store = MemoryStore()
    store.register("sam")
    log = store.open("sam", "test")
    seq = 0
    for turn, (event_id, end) in enumerate(turns, 1):
        events = [UserMessage(text="Hi"), *([end] if end is not None else [])]
        ids = [event_id, uuid7(START, 1000 + turn)]
        commit = [
            draft(event, event_id=own, recorded_at=START, turn=turn, step=0)
            for event, own in zip(events, ids, strict=False)
        ]
        log.append("sam", seq, commit)
        seq += len(commit)
    return log


def test_input_outcomes_are_read_from_the_records() -> None:
    """Each input's outcome is found in any partition: written once, twice or never; answered, ended without an answer,
    or open.
    """
    answer, failure = MessageSent(text="Hello"), ModelFailed(failure="unreachable", text="No.")
    logs = [
        log_of((SAID, answer), (SAID_TWICE, answer), (FAILED, failure), (HANGING, None)),
        log_of((SAID_TWICE, None), (GIVEN_UP, TurnAbandoned(text="Too long.", reason="steps_max"))),
    ]
    found = input_outcomes(logs, [SAID, SAID_TWICE, FAILED, GIVEN_UP, HANGING, GONE])
    assert found == {
        SAID: InputOutcome(1, answered=True, ended=False),
        SAID_TWICE: InputOutcome(2, answered=True, ended=False),
        FAILED: InputOutcome(1, answered=True, ended=True),
        GIVEN_UP: InputOutcome(1, answered=False, ended=True),
        HANGING: InputOutcome(1, answered=False, ended=False),
        GONE: InputOutcome(0, answered=False, ended=False),
    }
    assert [event_id for event_id, fate in found.items() if fate.lost] == [HANGING, GONE]


def test_a_message_that_the_logs_do_not_have_is_lost(cli: Line) -> None:
    """The check uses only the logs: an id that no log has counts as lost, and an id that is in the logs twice as
    doubled.
    """
    run(cli, "--agents", "1", "--messages", "1")
    known = cli.lines("events", "fleet-00001", "--type", "user_message")[0]["event_id"]
    store = FileStore(cli.root, cli.clock.now)
    assert load.check(store, ["fleet-00001"], [known, GONE]) == load.LoadCheck(2, 1, 0, 0)
    assert load.check(store, ["fleet-00001"], [known, known]) == load.LoadCheck(2, 0, 1, 0)


def test_a_fleet_that_lost_something_fails() -> None:
    """A lost message, a doubled message, and an error other than a refusal each cause exit code 1."""

    def report(**changed: object) -> fleet_command.FleetReport:
        zero = dict.fromkeys(fleet_command.FleetReport.__struct_fields__, 0) | {"latency_ms": {}, "errors": []}
        return fleet_command.FleetReport(**(zero | changed))

    refused, broken = (
        fleet_command.ErrorCount(kind="K", count=1, example="", refused=is_so) for is_so in (True, False)
    )
    assert report().fine and report(errors=[refused]).fine
    assert not report(lost=1).fine
    assert not report(doubled=1).fine
    assert not report(errors=[refused, broken]).fine


@pytest.fixture
def home(cli: Line, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Line:
    """Return the command line of a user with an agent in the store of EVERLOG_STORE."""
    cli.ok("create", "sam")
    monkeypatch.setenv("EVERLOG_STORE", str(cli.root))
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "temporary"))
    (tmp_path / "temporary").mkdir()
    return cli


def plain(home: Line, capsys: pytest.CaptureFixture[str], *more: str) -> tuple[int, str, str]:
    """Run a small fleet without --store. Return exit code, stdout and stderr."""
    words = ["fleet", "--agents", "1", "--messages", "1", "--runtime", "local", *more]
    code = main(words, world=home.world)
    return code, *capsys.readouterr()


def test_a_load_test_stays_out_of_the_users_store(home: Line, tmp_path: Path, capsys) -> None:
    """Its agents are in a temporary store that it names and removes; the user's store is as before."""
    code, out, err = plain(home, capsys)
    assert code == 0, err
    assert f"the agents are in the store {tmp_path / 'temporary'}" in err
    assert "The store was removed" in out
    assert list((tmp_path / "temporary").iterdir()) == []
    assert [row["agent"] for row in home.json("agents")] == ["sam"]


def test_a_load_test_is_kept_where_the_user_says(home: Line, tmp_path: Path, capsys) -> None:
    """--keep uses a new folder only, --here the store of the other commands; the suggested command finds the agents."""
    kept = tmp_path / "a load"
    code, out, err = plain(home, capsys, "--keep", str(kept))
    assert code == 0, err
    assert f"everlog --store '{kept}' chat fleet-00001" in out
    assert FileStore(kept, home.clock.now).agents() == ["fleet-00001"]
    code, _, err = plain(home, capsys, "--keep", str(kept))
    assert code == 1 and "is not empty" in err
    assert plain(home, capsys, "--here", "--json")[0] == 0
    assert {row["agent"] for row in home.json("agents")} == {"fleet-00001", "sam"}
