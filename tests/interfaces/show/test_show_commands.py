"""The commands that read: agents, events, context, memory, pressure, search, rebuild, verify, log check."""

import json
from pathlib import Path

import pytest

from everlog.events import SystemAlert, draft, uuid7
from everlog.interfaces.common import time_text
from everlog.store import FileStore
from tests.support.cli.command_line import START, Line, Made, completion, says


def named(cli: Line) -> None:
    """Create an agent that got a name in a message, and was asked for it."""
    edit = ("core_memory_replace", {"name": "human", "old_content": "unknown", "new_content": "Chad"})
    hello = ("send_message", {"message": "Hello Chad"})
    cli.script.answers = [completion(edit, hello), says("Chad.")]
    cli.ok("send", "sam", "I am Chad")
    cli.ok("send", "sam", "Who am I?")


@pytest.fixture
def sam(cli: Line, made: Made) -> Line:
    """Return a command line with such an agent."""
    made.begin(cli, "reading", named)
    return cli


def test_memory_as_of_any_seq(sam: Line):
    """Core memory is shown as of any seq, with the record that wrote each block."""
    before, after = sam.json("memory", "sam", "--as-of", "7"), sam.json("memory", "sam")
    assert [block["value"] for block in before["blocks"]][1] == "First name: unknown"
    human = after["blocks"][1]
    assert (human["label"], human["value"], human["limit"]) == ("human", "First name: Chad", 2000)
    assert (
        sam.lines("events", "sam", "--from", str(human["seq"]), "--to", str(human["seq"]))[0]["type"] == "memory_edited"
    )


def test_as_of_a_time(sam: Line):
    """--as-of accepts a time: the command shows the state after the last record written at or before that time."""
    records = sam.lines("events", "sam")
    seventh = next(record for record in records if record["seq"] == 7)
    assert sam.json("memory", "sam", "--as-of", seventh["recorded_at"])["as_of"] == 7
    assert sam.json("memory", "sam", "--as-of", "2999-01-01")["as_of"] == records[-1]["seq"]


@pytest.mark.parametrize("command", ["memory", "context", "pressure", "search"])
@pytest.mark.parametrize(
    "as_of",
    ["0", "-1", "999", "yesterday", "1999-01-01", "+-5", "9" * 30, "9" * 5000, "0001-01-01T00:00+23:59", ""],
    ids=lambda as_of: as_of[:40],
)
def test_a_wrong_as_of_names_the_head(command, as_of, sam: Line):
    """An unknown seq, or text that is no time, is an error that names the existing seqs."""
    head = sam.json("memory", "sam")["as_of"]
    query = ["Chad"] if command == "search" else []
    assert f"1 to {head}, the head" in sam.fails(command, "sam", *query, f"--as-of={as_of}")


def test_before_the_context(sam: Line):
    """Before its configuration an agent has no context, and the command says so."""
    assert "set up at seq 2" in sam.fails("context", "sam", "--as-of", "1")
    assert sam.json("memory", "sam", "--as-of", "1")["blocks"] == []


def test_context_as_of_a_seq_never_changes(sam: Line):
    """`context --as-of N` prints exactly what `context` printed when N was the head."""
    then = sam.ok("context", "sam", "--json")
    head = json.loads(then)["as_of"]
    sam.ok("send", "sam", "More.")
    assert sam.ok("context", "sam", "--json", "--as-of", str(head)) == then
    assert sam.ok("context", "sam", "--json") != then


def test_context_is_what_is_sent(sam: Line):
    """`context` shows the messages of the request, in order, with the seq of each."""
    sam.ok("send", "sam", "More.")
    said = next(r for r in reversed(sam.lines("events", "sam")) if r["type"] == "user_message")
    shape = sam.json("context", "sam", "--as-of", str(said["seq"]))
    sent = json.loads(sam.script.asked[-1])["messages"]
    assert [{k: v for k, v in m.items() if k != "seq"} for m in shape["messages"]] == sent
    assert shape["messages"][0]["seq"] == 0
    assert shape["messages"][-1]["seq"] == said["seq"]
    assert 0 < shape["tokens"] < shape["window"]


def test_pressure(sam: Line):
    """The pressure is the tokens of the last call divided by the window."""
    shape = sam.json("pressure", "sam")
    assert (shape["tokens"], shape["window"], shape["warned"], shape["summaries"]) == (1020, 8192, False, 0)
    assert "1,020 of 8,192" in sam.ok("pressure", "sam")


def test_events_by_range_and_type(sam: Line):
    """--from, --to and --type select records; both ends are inclusive."""
    assert [r["seq"] for r in sam.lines("events", "sam", "--from", "3", "--to", "5")] == [3, 4, 5]
    kinds = {r["type"] for r in sam.lines("events", "sam", "--type", "user_message", "--type", "message_sent")}
    assert kinds == {"user_message", "message_sent"}
    assert "user_message" in sam.fails("events", "sam", "--type", "user_mesage")


def test_events_for_people_fit_the_width(sam: Line):
    """Each record is one line, no wider than the terminal."""
    _, *lines = sam.ok("events", "sam").splitlines()
    assert len(lines) == len(sam.lines("events", "sam"))
    assert max(map(len, lines)) <= 100


@pytest.mark.beside_store("the log is written by another process, while the server has it open")
def test_follow_prints_what_comes(sam: Line):
    """`events --follow` prints the log, then new records after each sleep, until Ctrl-C."""
    head = sam.json("memory", "sam")["as_of"]
    said = draft(SystemAlert(text="late"), event_id=uuid7(START, 99), recorded_at=START, turn=9, step=0)

    def on_sleep() -> None:
        if len(sam.sleeps) > 1:
            raise KeyboardInterrupt
        log = FileStore(sam.root, sam.clock.now).open("sam", "test")
        log.append("sam", head, [said])
        log.close()

    sam.on_sleep = on_sleep
    code, out, err = sam("events", "sam", "--follow", "--from", str(head), "--json")
    assert code == 130
    assert err == ""
    assert [json.loads(line)["seq"] for line in out.splitlines()] == [head, head + 1]
    assert sam.sleeps == [0.5, 0.5]


def test_agents(sam: Line):
    """`agents` lists names, counts and the time of each agent's last activity."""
    sam.ok("create", "ann")
    ann, other = sam.json("agents")
    assert (ann["agent"], ann["messages"]) == ("ann", 0)
    assert (other["agent"], other["messages"]) == ("sam", 4)
    assert time_text.microseconds(ann["last_active"]) > START
    assert "just now" in sam.ok("agents")


def test_agents_as_of_a_time(sam: Line):
    """`agents --as-of TIME` lists the agents that existed at that time, in their state at that time; a seq is
    refused.
    """
    born = sam.lines("events", "sam")[0]["recorded_at"]
    then = sam.lines("events", "sam")[-1]["recorded_at"]
    events = sam.json("agents")[0]["events"]
    sam.clock.at += 3600 * 10**6
    sam.ok("send", "ann", "Hello")
    sam.ok("delete", "sam", "--yes")
    assert [row["agent"] for row in sam.json("agents")] == ["ann"]
    assert [(row["agent"], row["events"]) for row in sam.json("agents", "--as-of", then)] == [("sam", events)]
    assert [row["agent"] for row in sam.json("agents", "--as-of", "30m")] == ["sam"]
    assert sam.json("agents", "--as-of", "1999-01-01") == []
    assert sam.json("agents", "--as-of", born)[0]["events"] < events
    assert "each agent has seqs of its own" in sam.fails("agents", "--as-of", "7")


def test_events_up_to_a_moment(sam: Line):
    """`events --as-of` ends at that moment, or at --to if --to is earlier; it is refused together with --follow."""
    records = sam.lines("events", "sam")
    assert [event["seq"] for event in sam.lines("events", "sam", "--as-of", "7")] == list(range(1, 8))
    assert [event["seq"] for event in sam.lines("events", "sam", "--as-of", "7", "--to", "3")] == [1, 2, 3]
    ninth = records[8]["recorded_at"]
    expected = max(event["seq"] for event in records if event["recorded_at"] <= ninth)
    assert sam.lines("events", "sam", "--as-of", ninth)[-1]["seq"] == expected
    assert sam("events", "sam", "--as-of", "7", "--follow")[0] == 2


def test_as_of_so_long_ago(sam: Line):
    """A length of time, with or without "ago", means that long before now."""
    head = sam.json("memory", "sam")["as_of"]
    sam.clock.at += 2 * 3600 * 10**6
    sam.ok("send", "sam", "And now?")
    assert sam.json("memory", "sam", "--as-of", "1h")["as_of"] == head
    assert sam.json("memory", "sam", "--as-of", "1h30m ago")["as_of"] == head
    assert "began after" in sam.fails("memory", "sam", "--as-of", "9d")


@pytest.mark.parametrize(
    "argv",
    [["memory"], ["context"], ["events"], ["pressure"], ["search", "x"], ["rebuild"], ["verify"], ["delete", "--yes"]],
    ids=lambda argv: argv[0],
)
def test_unknown_agents(argv, sam: Line):
    """Reading an unknown agent is an error that names similar names, and makes no agent."""
    command, *rest = argv
    assert "sam" in sam.fails(command, "sma", *rest)
    assert len(sam.json("agents")) == 1


@pytest.mark.beside_store("a server has a store")
def test_no_store(cli: Line):
    """Reading without a store is an error, and makes no store."""
    assert "no store" in cli.fails("agents")
    assert not cli.root.exists()


WORDS = ("search", "sam", "--words")
"""Results by meaning are tested in test_indexing.py."""


def test_search(sam: Line):
    """Search returns messages, one page at a time, as of any moment."""
    shape = sam.json(*WORDS, "Chad")
    said = ["chad" in hit["text"].lower() for hit in shape["results"]]
    assert said == [True, True, True, False]  # what was said beside it comes after it
    assert {"user", "assistant"} == {hit["role"] for hit in shape["results"]}
    assert shape["results"][0]["time"].endswith("Z")
    assert sam.json(*WORDS, "Chad", "--as-of", "8")["total"] == 1
    assert sam.json(*WORDS, "Chad", "--page", "7")["results"] == []
    assert sam.json(*WORDS, "Chad", "--in", "archival")["total"] == 0
    assert "Showing 4 of 4 results (page 1 of 1)" in sam.ok(*WORDS, "Chad")
    assert " · score " in sam.ok(*WORDS, "Chad", "--scores")
    assert " · score " not in sam.ok(*WORDS, "Chad")
    assert "nothing found" in sam.ok(*WORDS, "zebra")


def test_a_search_is_narrowed_by_role_and_day(sam: Line):
    """Filters apply to messages and to memories; an invalid filter is an error."""
    both, users = sam.json(*WORDS, "Chad"), sam.json(*WORDS, "Chad", "--role", "user")
    assert {hit["role"] for hit in users["results"]} == {"user"} and users["total"] < both["total"]
    day = both["results"][0]["time"][:10]
    assert sam.json(*WORDS, "Chad", "--since", day, "--until", day)["total"] == both["total"]
    assert sam.json(*WORDS, "Chad", "--until", "1999-12-31")["total"] == 0
    assert "assistant, user" in sam.fails(*WORDS, "Chad", "--role", "system")
    for place in ("recall", "archival"):
        assert "YYYY-MM-DD" in sam.fails(*WORDS, "Chad", "--in", place, "--since", "yesterday")
    assert sam.json(*WORDS, "Chad", "--in", "archival", "--tag", "boats")["total"] == 0


def test_pages_and_ranges_far_away(sam: Line):
    """The largest page number and the largest seqs give empty results, not an error."""
    assert sam.json(*WORDS, "Chad", "--page", "1000000")["results"] == []
    assert sam.json(*WORDS, "Chad", "--page", "1000000", "--in", "archival")["results"] == []
    assert sam.lines("events", "sam", "--from", "1000000000000000") == []
    assert sam.lines("events", "sam", "--to", "1000000000000000") == sam.lines("events", "sam")


def test_a_file_of_queries(sam: Line, tmp_path: Path):
    """Each line of a file of queries gets its results; a bad line is named and no query is answered."""
    queries = tmp_path / "q"
    queries.write_text('Chad\n{"query": "hello"}\n\n{"question": "Who am I?", "answer": 2022}\n')
    lines = [json.loads(line) for line in sam.ok(*WORDS, "--queries", str(queries)).splitlines()]
    assert [line["query"] for line in lines] == ["Chad", "hello", "Who am I?"]
    assert lines[0]["total"] == len(lines[0]["results"]) == 4
    queries.write_text('Chad\n{"text": "hello"}\n')
    assert "line 2" in sam.fails(*WORDS, "--queries", str(queries))


@pytest.mark.parametrize("command", ["rebuild", "verify"])
def test_proofs(command, sam: Line):
    """`rebuild` and `verify` find no difference, for one agent and for all."""
    sam.ok("create", "ann")
    one, both = sam.json(command, "sam"), sam.json(command, "--all")
    assert (one["agent"], one["faults"]) == ("sam", [])
    assert one["checked"] > 1
    assert [report["agent"] for report in both] == ["ann", "sam"]
    assert "no difference" in sam.ok(command, "--all")


def damaged(cli: Line, at: int) -> None:
    """Change one byte of the log."""
    (path,) = cli.root.glob("log/*/*.open")
    data = bytearray(path.read_bytes())
    data[at] ^= 255
    path.write_bytes(data)


@pytest.mark.beside_store("the server has its own log of warnings")
def test_a_torn_tail_is_warned_about(sam: Line):
    """Reading commands skip a torn tail with a warning; `log check` exits 1."""
    assert sam.json("log", "check", "sam")["errors"] == []
    (path,) = sam.root.glob("log/*/*.open")
    path.write_bytes(path.read_bytes() + b"torn")
    code, out, err = sam("memory", "sam", "--json")
    assert (code, len(out.splitlines())) == (0, 1)
    assert err.startswith("everlog: warning: ")
    code, out, _ = sam("log", "check", "sam")
    assert code == 1
    assert "torn tail" in out


def test_damage_is_an_error(sam: Line):
    """A changed byte inside the log is one paragraph and exit code 1 in every command; other agents can be read."""
    damaged(sam, 400)
    sam.fails("memory", "sam")
    code, _, _ = sam("verify", "--all")
    assert code == 1
    code, _, _ = sam("log", "check", "--all", "--json")
    assert code == 1


def test_a_range_without_records_says_so(sam: Line):
    """A range beyond the head, or one that ends before it begins, is empty; stderr gives the reason, and the exit code
    is 0.
    """
    head = sam.json("memory", "sam")["as_of"]
    assert sam("events", "sam", "--from", "900") == (
        0, "", f"everlog: --from 900 is beyond the last record: 'sam' has records 1 to {head}.\n"
    )  # fmt: skip
    assert "--from 5 comes after --to 3" in sam("events", "sam", "--from", "5", "--to", "3")[2]
    assert sam("events", "sam", "--from", str(head))[2] == ""


@pytest.mark.beside_store("the times that a server shows are those of its own clock")
def test_a_memory_header_fits_the_terminal(sam: Line, monkeypatch: pytest.MonkeyPatch):
    """If a header is too long for the width, the time of a block's edit is on a line of its own."""
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setattr(sam.clock, "now", lambda: START + 20_000_000)
    lines = sam.ok("memory", "sam").splitlines()
    assert max(map(len, lines)) <= 80
    assert any(line.startswith("  seq 3, ") and line.endswith(" ago") for line in lines)


@pytest.mark.parametrize(
    ("at", "zone", "text", "prompt"),
    [
        (START, "UTC", "2023-11-14 22:13:20 UTC", "2023-11-14 10:13:20 PM UTC+0000"),
        (START, "Europe/Oslo", "2023-11-14 23:13:20 CET", "2023-11-14 11:13:20 PM CET+0100"),
        (START, "America/Sao_Paulo", "2023-11-14 19:13:20 UTC-03:00", "2023-11-14 07:13:20 PM -03-0300"),
        (0, "Asia/Kathmandu", "1970-01-01 05:30:00 UTC+05:30", "1970-01-01 05:30:00 AM +0530+0530"),
        (START + 6_400_000_000, "UTC", "2023-11-15 00:00:00 UTC", "2023-11-15 12:00:00 AM UTC+0000"),
        (time_text.microseconds("9999-12-31T23:00"), "Asia/Tokyo", "9999-12-31 23:00:00 UTC", None),
    ],
)
def test_a_time_for_people_has_its_zone(at, zone, text, prompt):
    """Every printed time has one format, also in a prompt; any other text is unchanged."""
    assert time_text.clock(at, zone) == text
    assert prompt is None or time_text.clock_of_prompt(prompt) == text
    assert time_text.clock_of_prompt("Never (first login)") == "Never (first login)"


@pytest.mark.parametrize(
    ("ago", "words"),
    [
        (0, "just now"), (59, "59 seconds ago"), (60, "1 minute ago"), (7199, "1 hour ago"), (86400 * 3, "3 days ago"),
        (86400 * 400, "1 year ago"), (-5, "at 2023-11-14 22:13:25 UTC"),
    ],
)  # fmt: skip
def test_relative_times(ago, words):
    """A past time is shown in the largest unit that fits; a future time is shown in full."""
    assert time_text.relative(START - ago * 1_000_000, START) == words


def test_pages_for_people(sam: Line):
    """Without --json every page is text that fits the width, without colour codes and trailing blanks."""
    for argv in (["memory"], ["context"], ["context", "--full"], ["pressure"], ["search", "Chad"], ["events"]):
        command, *rest = argv
        out = sam.ok(command, "sam", *rest)
        assert "\x1b" not in out
        assert all(line == line.rstrip() for line in out.splitlines())
        assert "Chad" in out or command == "pressure"


def test_the_columns_of_events_have_names(cli: Line) -> None:
    """The first line names the columns; turn and step are two numbers, and not one with a point."""
    cli.ok("send", "sam", "Hi")
    heading, *lines = cli.ok("events", "sam").splitlines()
    assert heading.split() == ["seq", "recorded", "turn", "step", "type", "content"]
    reply = next(line for line in lines if "message_sent" in line)
    assert reply.split()[4:7] == ["1", "1", "message_sent"]
    assert reply.index("message_sent") == heading.index("type")
    assert cli.ok("events", "sam", "--from", "99") == ""
