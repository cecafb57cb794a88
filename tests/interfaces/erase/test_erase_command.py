"""`everlog erase`: the content is removed from every file, the seqs remain, and the agent continues."""

import asyncio
import json
import shutil
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from everlog.actors.agent.local_system import LocalSystem
from everlog.actors.archive.archive_index import index_of
from everlog.events import BadInput, Record, UnknownAgent
from everlog.interfaces.output.terminal_output import detail
from everlog.store import ArchiveQuery, FileStore
from tests.support.agent_world import World
from tests.support.cli.command_line import Line, completion, says
from tests.support.seeds import split

CANARY = "XylophoneQuagmire"


def store_of(cli: Line) -> FileStore:
    return FileStore(cli.root, cli.clock.now)


def talk(cli: Line) -> int:
    """Hold a conversation that has the canary in many kinds of records. Return the head."""
    cli.begin("erased sam", hold_talk)
    return store_of(cli).reader("sam").head("sam").seq


def hold_talk(cli: Line) -> None:
    """Tell sam the canary, let it remember and answer, and import the canary."""
    said = f"my cat is called {CANARY}"
    cli.script.answers = [
        completion(
            ("core_memory_append", {"name": "human", "content": said}),
            ("archival_memory_insert", {"content": said}),
            ("send_message", {"message": f"What a name, {CANARY}!"}),
            thought=f"They say {CANARY}.",
        ),
        completion(("conversation_search", {"query": CANARY, "request_heartbeat": True})),
        says(f"You told me: {CANARY}."),
    ]
    cli.ok("send", "sam", said, "--window", "8192")
    cli.ok("send", "sam", f"Do you remember {CANARY}?")
    path = cli.root.parent / "talk.jsonl"
    lines = [{"role": role, "content": said, "time": "2024-01-01"} for role in ("user", "assistant")]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    cli.ok("import", "sam", str(path))


def leftovers(root: Path) -> list[str]:
    """Return the files below a folder that contain the canary. Parquet is compressed, so its rows are read."""
    found = []
    for path in (path for path in root.rglob("*") if path.is_file()):
        data = path.read_bytes()
        if path.suffix in (".parquet", ".state"):
            data += repr(pq.read_table(path).to_pylist()).encode()
        if CANARY.encode() in data:
            found.append(path.name)
    return found


def unsealed(cli: Line) -> None:
    """Leave the log as it is after a few messages."""


def sealed(cli: Line) -> None:
    cli.ok("log", "seal", "sam")


def compacted(cli: Line) -> None:
    """Make two sealed files and add messages twice: old records are in a file that a small seal does not rewrite."""
    for _ in range(2):
        cli.ok("log", "seal", "sam")
        cli.ok("send", "sam", f"again {CANARY}")
    cli.ok("log", "seal", "sam")
    cli.ok("send", "sam", f"and again {CANARY}")


def cut(cli: Line) -> None:
    """Leave a torn tail with the canary, which the next owner cuts off and keeps."""
    (path,) = cli.root.rglob("*.open")
    with path.open("ab") as file:
        file.write(f"torn {CANARY}".encode())
    cli.ok("create", "other")
    code, _, err = cli("send", "sam", "hello")
    assert code == 0
    assert "damaged bytes" in err
    assert list(cli.root.rglob("*.cut"))


@pytest.mark.parametrize("prepare", split([unsealed, sealed, compacted, cut], 1, label="files", part="commands"))
def test_nothing_is_left_in_any_file(cli: Line, prepare):
    """After an erasure, no byte below the store has the content in any file format of the log, and the log is whole."""
    talk(cli)
    prepare(cli)
    assert leftovers(cli.root)
    shape = cli.json("erase", "sam", "--all", "--yes")
    assert shape["to_seq"] - shape["from_seq"] + 1 == shape["erased"]
    assert leftovers(cli.root) == []
    assert cli.json("log", "check", "sam", "--deep") | {"errors": [], "notes": []} == cli.json("log", "check", "sam")
    assert "no difference" in cli.ok("rebuild", "--all")


def test_everything_works_whatever_was_erased(cli: Line, tmp_path):
    """Every command reads an erased range, and the agent continues; if the configuration was in the range, it is
    recorded again.
    """
    talk(cli)
    each(cli, tmp_path, [(2, 2)])


@pytest.mark.long
@pytest.mark.commands
def test_everything_works_whichever_record_was_erased(cli: Line, tmp_path):
    """The same holds for all records, the creation, the records after the creation, and each single record."""
    head = talk(cli)
    each(cli, tmp_path, [(1, head), (8, 14), (1, 7), (8, head), *((n, n) for n in range(1, head + 1))])


def each(cli: Line, tmp_path: Path, ranges: list[tuple[int, int]]) -> None:
    """Erase each range in a copy of the store, and check everything before and after the agent continued."""
    head = len(cli.lines("events", "sam"))
    cli.ok("log", "seal", "sam")
    whole = cli.root
    for first, last in ranges:
        cli.root = tmp_path / f"{first}-{last}"
        shutil.copytree(whole, cli.root)
        cli.ok("erase", "sam", "--from", str(first), "--to", str(last), "--yes")
        everything(cli)
        cli.ok("send", "sam", "Are you still there?")
        kinds = [record["type"] for record in cli.lines("events", "sam", "--from", str(head + 1))]
        assert ("agent_configured" in kinds) == (first <= 2 <= last), (first, last)
        assert kinds[-2:] == ["message_sent", "function_result"]
        everything(cli)
        shutil.rmtree(cli.root)


def everything(cli: Line) -> None:
    """Check that each reading command prints something, and that no check finds a fault."""
    for argv in (
        ["events", "sam"], ["agents"], ["context", "sam"], ["memory", "sam"], ["pressure", "sam"],
        ["search", "sam", CANARY], ["search", "sam", CANARY, "--in", "archival"], ["rebuild", "--all"],
        ["verify", "sam"], ["log", "check", "sam", "--deep"],
    ):  # fmt: skip
        assert cli.ok(*argv), argv


def test_an_agent_without_a_configuration_has_no_window(cli: Line):
    """Context and pressure say why they are empty, as text and as JSON; search finds the remaining records."""
    head = talk(cli)
    cli.ok("erase", "sam", "--to", "2", "--yes")
    assert "configuration was erased" in cli.ok("context", "sam")
    assert "configuration was erased" in cli.ok("pressure", "sam")
    context = cli.json("context", "sam")
    assert (context["window"], context["messages"], context["as_of"]) == (0, [], head + 1)
    assert cli.json("search", "sam", CANARY)["total"] > 0
    cli.ok("send", "sam", "hello")
    assert cli.json("context", "sam")["window"] > 0


def test_what_was_erased_is_not_seen_by_the_model(cli: Line):
    """The next request holds no erased content, and no search finds any."""
    talk(cli)
    cli.ok("erase", "sam", "--from", "8", "--yes")
    cli.ok("send", "sam", "hello")
    assert CANARY.encode() not in cli.script.asked[-1]
    for place in ("recall", "archival"):
        found = cli.json("search", "sam", CANARY, "--in", place)["results"]  # by meaning something is always near
        assert not [hit for hit in found if CANARY in hit["text"]]
    assert CANARY not in cli.ok("memory", "sam") + cli.ok("context", "sam", "--full")


def test_verify_notes_what_it_cannot_check(cli: Line):
    """A request that needs erased content is a note, not a fault; the other requests are checked."""
    talk(cli)
    before = cli.json("verify", "sam")["checked"]
    cli.ok("erase", "sam", "--from", "8", "--to", "8", "--yes")
    report = cli.json("verify", "sam")
    assert report["faults"] == []
    assert report["checked"] < before
    assert report["calls"]["erased"] == len(report["erased"]) == report["calls"]["all"] - report["checked"]
    assert report["notes"][-1].startswith("erased: ")
    cli.ok("erase", "sam", "--all", "--yes")
    report = cli.json("verify", "sam")
    assert (report["faults"], report["checked"]) == ([], 0)
    assert report["calls"]["erased"] == report["calls"]["all"] > 0


def test_verify_still_finds_a_fault_before_what_was_erased(cli: Line, monkeypatch):
    """A fault in records before the erased range is still found."""
    head = talk(cli)
    cli.ok("erase", "sam", "--from", str(head), "--yes")
    monkeypatch.setattr("everlog.actors.formats.render_request.ACCESS", "(something else)")
    code, out, _ = cli("verify", "sam")
    assert code == 1
    assert "the request differs first in the memory header" in out


def test_events_show_the_place(cli: Line):
    """People read `erased`; programs get null and the digest; the erasure itself names the erased seqs."""
    talk(cli)
    cli.ok("erase", "sam", "--from", "8", "--to", "9", "--yes")
    lines = cli.ok("events", "sam").splitlines()[1:]  # without the names of the columns
    assert lines[7].split()[-2:] == ["user_message", "erased"]
    assert lines[8].split()[-2:] == ["model_reply", "erased"]
    assert lines[-1].endswith("records_erased     seq 8 to 9")
    record = cli.lines("events", "sam", "--from", "8", "--to", "8")[0]
    assert record["text"] is None
    assert record["payload"]["erased"] is True


def test_every_kind_has_a_tombstone(cli: Line):
    """A tombstone of any kind of record can be shown."""
    talk(cli)
    cli.ok("erase", "sam", "--all", "--yes")
    records: list[Record] = list(store_of(cli).reader("sam").read("sam"))
    assert len({record.type for record in records}) > 8
    assert {detail(record) for record in records[:-1]} == {"erased"}


def test_a_deleted_agent_stays_deleted(cli: Line):
    """A deleted and erased agent is in no list, and its name can be used by a new agent."""
    head = talk(cli)
    cli.ok("delete", "sam", "--yes")
    cli.ok("erase", "sam", "--all", "--yes")
    assert leftovers(cli.root) == []
    assert cli.json("agents") == []
    for argv in (["memory"], ["context"], ["search", "x"], ["verify"], ["rebuild"]):
        code, _, err = cli(argv[0], "sam", *argv[1:])
        assert code == 0
        assert "was deleted" in err
    cli.ok("log", "seal", "sam")
    assert "already" in cli.fails("delete", "sam", "--yes")
    cli.ok("create", "sam")
    records = cli.lines("events", "sam")
    assert [record["type"] for record in records[head : head + 3]] == [
        "agent_deleted", "records_erased", "agent_created",
    ]  # fmt: skip
    assert "no difference" in cli.ok("verify", "sam")


def test_erasing_asks_first(cli: Line, monkeypatch):
    """Without a terminal --yes is required; on a terminal the user's answer decides, and the question gives the number
    of records.
    """
    head = talk(cli)
    code, _, err = cli("erase", "sam", "--all")
    assert code == 2
    assert "--yes" in err
    monkeypatch.setattr("sys.stdin.isatty", lambda: True, raising=False)
    asked: list[str] = []
    monkeypatch.setattr(cli, "_ask", lambda prompt: asked.append(prompt) or "n")
    code, out, _ = cli("erase", "sam", "--all")
    assert code == 1
    assert out.endswith("\nNothing was erased.\n")
    assert f"{head} records of sam (seq 1 to {head})" in asked[0]
    assert leftovers(cli.root)
    monkeypatch.setattr(cli, "_ask", lambda _: "y")
    assert "\nErased 1 record of sam (seq 9)." in cli.ok("erase", "sam", "--from", "9", "--to", "9")


@pytest.mark.parametrize(
    ("argv", "words"),
    [
        (["--from", "9", "--to", "8"], "--from 9 is greater than --to 8"),
        (["--to", "1000"], "--to 1000 is beyond the last record"),
        (["--from", "1000"], "--from 1000 is beyond the last record"),
    ],
)
def test_a_range_that_is_not_there(cli: Line, argv, words):
    """The error names the head, and nothing is written."""
    head = talk(cli)
    said = cli.fails("erase", "sam", *argv, "--yes")
    assert words in said
    assert f"records 1 to {head}" in said
    assert len(cli.lines("events", "sam")) == head


def test_what_was_erased_already(cli: Line):
    """Erasing the same range twice is refused; of a longer range, only the records with content are counted."""
    talk(cli)
    cli.ok("erase", "sam", "--from", "8", "--to", "9", "--yes")
    assert "erased already" in cli.fails("erase", "sam", "--from", "8", "--to", "9", "--yes")
    assert cli.json("erase", "sam", "--from", "8", "--to", "12", "--yes")["erased"] == 3


def test_an_open_agent_is_left_alone(cli: Line):
    """The exit code is 1, and the error names the process that has the agent open."""
    talk(cli)
    log = store_of(cli).open("sam", "everlog chat")
    try:
        code, _, said = cli("erase", "sam", "--all", "--yes")
    finally:
        log.close()
    assert code == 1
    assert "everlog chat" in said
    assert "--take-over" not in said
    assert leftovers(cli.root)


def test_erasing_needs_no_model_and_starts_nothing(cli: Line, monkeypatch):
    """One record is written, `records_erased`, whatever the model is."""
    cli.ok("create", "sam", "--model", "gpt-x")
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL"):
        monkeypatch.delenv(name, raising=False)
    cli.real = True
    head = len(cli.lines("events", "sam"))
    cli.ok("erase", "sam", "--all", "--yes")
    (record,) = cli.lines("events", "sam", "--from", str(head + 1))
    assert (record["type"], record["turn"], record["step"]) == ("records_erased", 0, 0)


def test_a_system_erases_in_memory():
    """The store in memory erases content too."""
    world = World()
    asyncio.run(world.tell("one", "two"))
    head = len(world.log())
    system: LocalSystem = world.system
    for first, last in ((0, 1), (5, 4), (1, head + 1), (head + 1, head + 1)):
        with pytest.raises(BadInput, match=f"1 to {head}"):
            system.erase("sam", first, last)
    with pytest.raises(UnknownAgent):
        system.erase("max")
    assert system.erase("sam", 8, 9).erased == 2
    assert [record.text for record in world.log()[7:9]] == [None, None]
    assert world.log()[-1].turn == 2
    asyncio.run(world.tell("three"))


def test_what_is_erased_is_gone_from_the_archive_too(cli: Line) -> None:
    """Rows, old versions of the table and cached vectors are gone after the command, without a search in between."""
    talk(cli)
    store = store_of(cli)
    index = index_of(store)
    index.follow()
    assert index.search(ArchiveQuery(query=CANARY, agent_id="sam", as_of=99, as_of_time=2**62)).total == 1
    index.close()
    cli.ok("erase", "sam", "--all", "--yes")
    assert leftovers(cli.root) == []
    index = index_of(store)
    assert index.search(ArchiveQuery(query=CANARY, agent_id="sam", as_of=99, as_of_time=2**62)).total == 0
    assert index.check() == []
    index.close()


def test_erasing_needs_a_selection(cli: Line):
    """Without a selection nothing is erased, also with --yes; the error names --all and the other ways."""
    talk(cli)
    code, _, err = cli("erase", "sam", "--yes")
    assert code == 2
    assert all(option in err for option in ("--match", "--turn", "--person", "--seq", "--all"))
    assert leftovers(cli.root)


def test_a_persona_is_not_erased_without_a_word(cli: Line):
    """A memory block that goes is named on stderr, also with --yes and --json; a message that goes has no such line."""
    talk(cli)
    for more in ([], ["--json"]):
        code, _, err = cli("erase", "sam", "--from", "3", "--to", "4", "--dry-run", *more)
        assert code == 0
        assert "warning: this erases the memory block 'persona' as of seq 3: 'sam' will have no persona." in err
    assert cli("erase", "sam", "--seq", "8", "--dry-run")[2] == ""
    assert "'persona'" in cli("erase", "sam", "--from", "3", "--to", "4", "--yes")[2]


@pytest.mark.parametrize("value", ["8-", "x", "9,", "-3", "8-x", ""])
def test_a_list_of_seqs_that_is_none(cli: Line, value: str):
    """A value of --seq that is no list of seqs is an error of usage."""
    assert cli("erase", "sam", f"--seq={value}", "--yes")[0] == 2


def test_options_select_records_together(cli: Line):
    """--seq, --turn, --person and --match each name their records with the reason; --json has all of them."""
    talk(cli)
    cli.ok("send", "sam", "I am Zoe and like tea", "--speaker", "Zoe")
    turn = cli.lines("events", "sam")[-1]["turn"]
    plan = cli.json("erase", "sam", "--seq", "3,5-6", "--turn", "2", "--person", "zoe", "--match", "tea", "--dry-run")
    reasons = {one["seq"]: one["why"] for one in plan["records"]}
    assert [seq for seq, why in reasons.items() if why == "selected"] == [3, 5, 6]
    assert set(reasons.values()) == {"selected", "of turn 2", "said by Zoe", "said to Zoe"}
    said = {one["type"] for one in plan["records"] if one["why"].endswith("Zoe")}
    assert said == {"user_message", "message_sent"}
    assert (plan["dry_run"], plan["erased"], turn) == (True, 0, 3)
    assert {one["why"].split(" ")[0] for one in plan["left"]} <= {"caused", "says"}
