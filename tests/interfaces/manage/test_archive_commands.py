"""`everlog archive`: a person stores, changes and deletes memories of an agent, and the agent finds these memories."""

import io
import json
import re

import pytest

from everlog.store import FileStore
from tests.support.cli.command_line import Line, completion, says

OAK = "The gold is under the oak."


def kept(cli: Line, *more: str) -> list[tuple[str, str, list[str]]]:
    """Return the stored memories as `archive list` shows them."""
    page = cli.json("archive", "list", "sam", *more)
    return [(result["ref"], result["text"], result["tags"]) for result in page["results"]]


def test_a_memory_is_kept_shown_changed_found_and_deleted(cli: Line) -> None:
    """Each command reports its work, and `list`, `show` and `search` agree; as of an earlier moment they show the
    earlier state.
    """
    cli.ok("create", "sam")
    first = cli.json("archive", "insert", "sam", OAK, "--tag", "gold", "--tag", "tree")
    known = first["memory"]
    assert first == {"agent": "sam", "memory": known, "known": False}
    assert cli.json("archive", "insert", "sam", f" {OAK}\n") == {"agent": "sam", "memory": known, "known": True}
    assert known in cli.ok("archive", "insert", "sam", OAK)
    before = cli.json("events", "sam", "--type", "archival_inserted")["seq"]
    assert cli.json("archive", "update", "sam", f"{known}/1", "Under the elm.") == {"agent": "sam", "memory": known}
    assert kept(cli) == [(known, "Under the elm.", ["gold", "tree"])]
    assert kept(cli, "--as-of", str(before)) == [(known, OAK, ["gold", "tree"])]
    cli.ok("archive", "update", "sam", known, "Under the elm.", "--no-tags")
    cli.ok("archive", "update", "sam", known, "Under the elm.", "--tag", "elm")
    shown = cli.json("archive", "show", "sam", known)
    assert (shown["ref"], shown["text"], shown["tags"], shown["parts"]) == (known, "Under the elm.", ["elm"], 1)
    assert "tags elm" in cli.ok("archive", "show", "sam", known)
    (found,) = cli.json("archive", "search", "sam", "elm")["results"]
    assert (found["ref"], found["text"]) == (known, "Under the elm.")
    assert "Under the elm." in cli.ok("archive", "search", "sam", "elm")
    assert cli.json("search", "sam", "elm", "--in", "archival")["total"] == 1
    assert cli.json("archive", "delete", "sam", known) == {"agent": "sam", "memory": known}
    assert kept(cli) == []
    assert "nothing found" in cli.ok("archive", "list", "sam")
    assert "no memory" in cli.fails("archive", "show", "sam", known)
    assert cli.json("archive", "show", "sam", known, "--as-of", str(before))["text"] == OAK
    assert json.loads(cli.ok("verify", "sam", "--json"))["faults"] == []


def test_the_agent_finds_what_a_person_keeps(cli: Line) -> None:
    """The agent's own search in its next turn finds the memory; a memory that the agent inserts itself is listed
    too.
    """
    cli.ok("create", "sam", "--model", "script")
    known = cli.json("archive", "insert", "sam", OAK)["memory"]
    cli.script.answers = [
        completion(("archival_memory_search", {"query": "gold", "request_heartbeat": True})),
        completion(
            ("archival_memory_insert", {"content": "The silver is lost.", "tags": ["silver"]}),
            ("send_message", {"message": "Under the oak."}),
        ),
    ]
    cli.ok("send", "sam", "Where is the gold?")
    assert re.search(rf"id: {known}, near: 0\.\d\d, memory: {OAK}", cli.script.asked[1].decode())
    assert [(text, tags) for _, text, tags in kept(cli)] == [(OAK, []), ("The silver is lost.", ["silver"])]
    assert [text for _, text, _ in kept(cli, "--tag", "silver")] == ["The silver is lost."]


def test_long_lists_come_in_pages(cli: Line) -> None:
    """Memories are listed in the order in which they were stored; all pages together are the list, and days and tags
    filter the list.
    """
    cli.ok("create", "sam", "--zone", "Asia/Tokyo")
    for number in range(23):
        cli.ok("archive", "insert", "sam", f"number {number}", "--tag", "odd" if number % 2 else "even")
    first, second = cli.json("archive", "list", "sam"), cli.json("archive", "list", "sam", "--page", "2")
    assert (first["total"], first["pages"], len(first["results"]), len(second["results"])) == (23, 2, 20, 3)
    assert (first["page"], second["page"]) == (1, 2)
    texts = [result["text"] for result in [*first["results"], *second["results"]]]
    assert texts == [f"number {number}" for number in range(23)]
    said = cli.ok("archive", "list", "sam")
    assert said.startswith("Showing 20 of 23 results (page 1 of 2)\n") and said.endswith("\nNext page: --page 2\n")
    assert " JST · " in said, "a time is in the zone in which --since counts days"
    assert "Next page" not in cli.ok("archive", "list", "sam", "--page", "2")
    assert "no page 3, only 2 pages" in cli.ok("archive", "list", "sam", "--page", "3")
    assert cli.json("archive", "list", "sam", "--tag", "odd")["total"] == 11
    assert cli.json("archive", "list", "sam", "--tag", "odd", "--tag", "even")["total"] == 0
    day = "2023-11-15"  # 22:13 UTC on the 14th is the 15th in Tokyo
    assert cli.json("archive", "list", "sam", "--since", day, "--until", day)["total"] == 23
    assert cli.json("archive", "list", "sam", "--until", "2023-11-14")["total"] == 0
    assert cli.json("archive", "search", "sam", "number", "--since", "2023-11-16")["total"] == 0


def test_a_text_is_taken_from_a_file_or_from_stdin(cli: Line, tmp_path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Surrounding white space is removed; a file that is not text is an error that names the file."""
    cli.ok("create", "sam")
    path = tmp_path / "note.txt"
    path.write_text("Grüße\n\nvom Meer\n")
    cli.ok("archive", "insert", "sam", "--file", str(path))
    monkeypatch.setattr("sys.stdin", io.StringIO("from stdin\n"))
    cli.ok("archive", "insert", "sam", "-")
    assert [text for _, text, _ in kept(cli)] == ["Grüße\n\nvom Meer", "from stdin"]
    path.write_bytes(b"\xff\xfe")
    assert "is not UTF-8 text" in cli.fails("archive", "insert", "sam", "--file", str(path))


@pytest.mark.parametrize(
    "argv",
    [
        ("insert", "sam"),
        ("insert", "sam", "  "),
        ("insert", "sam", "x", "--file", "y"),
        ("update", "sam", "4711", "x", "--tag", "a", "--no-tags"),
        ("update", "sam", " ", "x"),
        ("show", "sam"),
        ("search", "sam"),
        ("search", "sam", ""),
        ("list", "sam", "--page", "0"),
    ],
    ids=" ".join,
)
def test_impossible_arguments_are_bad_usage(cli: Line, argv: tuple[str, ...]) -> None:
    """Impossible arguments exit with code 2, and nothing is stored."""
    cli.ok("create", "sam")
    code, _, err = cli("archive", *argv)
    assert code == 2
    assert "usage: everlog archive" in err
    assert kept(cli) == []


@pytest.mark.parametrize(
    ("argv", "said"),
    [
        (("update", "sam", "4711", "x"), "no memory with the id '4711'"),
        (("delete", "sam", "4711"), "no memory with the id '4711'"),
        (("show", "sam", "4711"), "`everlog archive list sam` lists"),
        (("insert", "sam", "x", "--tag", " "), "none empty"),
        (("insert", "sam", "x" * 1_000_001), "1,000,000 characters at most"),
        (("list", "sam", "--since", "soon"), "YYYY-MM-DD"),
        (("list", "sam", "--since", "2024-01-02", "--until", "2024-01-01"), "is before the first"),
        (("search", "sam", "x", "--source", "nowhere"), "no source 'nowhere'"),
        (("list", "sam", "--as-of", "4711"), "the head"),
        (("insert", "ann", "x"), "There is no agent 'ann'"),
        (("insert", "sam", "half \udc80"), "is not UTF-8"),
    ],
    ids=lambda value: " ".join(value)[:40] if isinstance(value, tuple) else "",
)
def test_what_cannot_be_done_is_said(cli: Line, argv: tuple[str, ...], said: str) -> None:
    """Impossible requests exit with code 1 and an error that names what was expected; nothing is stored."""
    cli.ok("create", "sam")
    assert said in cli.fails("archive", *argv)
    assert kept(cli) == []


def test_an_agent_that_is_open_elsewhere_is_left_alone(cli: Line) -> None:
    """Writing commands are refused with what to do instead; reading commands work."""
    cli.ok("create", "sam")
    known = cli.json("archive", "insert", "sam", OAK)["memory"]
    log = FileStore(cli.root, cli.clock.now).open("sam", "everlog chat")
    for words in (("insert", "sam", "x"), ("update", "sam", known, "x"), ("delete", "sam", known)):
        assert "Close it there and run the command again. Nothing was changed." in cli.fails("archive", *words)
    assert [text for _, text, _ in kept(cli)] == [OAK]
    log.close()


def test_what_was_erased_is_kept_no_more(cli: Line) -> None:
    """Neither the list nor a search shows an erased memory, even if the agent's configuration was erased too."""
    cli.ok("create", "sam", "--model", "script")
    cli.script.answers = [says("Hello.")]
    cli.ok("archive", "insert", "sam", OAK)
    cli.ok("erase", "sam", "--all", "--yes")
    assert kept(cli) == []
    assert cli.json("archive", "search", "sam", "gold")["total"] == 0
