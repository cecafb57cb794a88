"""`everlog search` in all places of an agent, and in many agents."""

import json
from pathlib import Path

import pytest

from everlog.store import FileStore
from tests.actors.memory.test_derived_search import derived, first_seq, world_with
from tests.interfaces.conftest import Line
from tests.support.agent_world import START

LONG = "I walked along the quay and looked at the water for a while. " * 12
TOLD = {
    "ann": ["My boat is called Vera.", f"{LONG}The harbour master is Olaf. {LONG}"],
    "bob": ["A boat needs paint every year."],
    "cid": ["I bake rye bread every Sunday."],
}


@pytest.fixture
def fleet(cli: Line, tmp_path: Path) -> Line:
    """Return a command line with three agents; ann has a memory and a document too."""

    def make(line: Line) -> None:
        for name, texts in TOLD.items():
            rows = [
                {"role": "user", "content": text, "time": f"2026-01-0{n}T10:00:00Z"} for n, text in enumerate(texts, 1)
            ]
            (tmp_path / name).write_text("\n".join(map(json.dumps, rows)))
            line.ok("import", name, str(tmp_path / name))
        line.ok("archive", "insert", "ann", "The boat has a berth in Bergen", "--tag", "boats")
        (tmp_path / "tides.txt").write_text("At spring tide a boat needs a longer rope.")
        line.ok("load", "ann", str(tmp_path / "tides.txt"), "--source", "almanac")

    cli.begin("searched fleet", make)
    return cli


def test_all_places_are_searched_together(fleet: Line) -> None:
    """Messages, memories and documents are one list, each with its place; --in restricts it."""
    found = fleet.json("search", "ann", "a boat")["results"]
    assert {hit["place"] for hit in found} == {"messages", "archive", "documents"}
    assert {hit["agent"] for hit in found} == {"ann"}
    for place in ("messages", "archive", "documents"):
        own = fleet.json("search", "ann", "a boat", "--in", place)["results"]
        assert {hit["place"] for hit in own} == {place}
        assert [hit["ref"] for hit in found if hit["place"] == place] == [hit["ref"] for hit in own]
    old = fleet.json("search", "ann", "a boat", "--in", "archival")["results"]
    assert {hit["place"] for hit in old} == {"archive", "documents"}
    page = fleet.ok("search", "ann", "a boat", "--words")
    assert "\nuser · 2026-01-01 10:00:00 UTC" in page and "\nmemory · " in page
    assert {hit["place"] for hit in fleet.json("search", "ann", "a boat", "--tag", "boats")["results"]} == {"archive"}
    assert {hit["role"] for hit in fleet.json("search", "ann", "a boat", "--role", "user")["results"]} == {"user"}


def test_all_agents_are_searched_together(fleet: Line) -> None:
    """--all and patterns rank the results of all agents together, each with its agent."""
    found = fleet.json("search", "--all", "who bakes bread", "--words")
    assert (found["results"][0]["agent"], found["results"][0]["text"]) == ("cid", "I bake rye bread every Sunday.")
    page = fleet.ok("search", "--all", "boat", "--words")
    assert "user in ann · " in page and "user in bob · " in page
    some = fleet.json("search", "[ab]*", "boat bread", "--words")["results"]
    assert {hit["agent"] for hit in some} == {"ann", "bob"}
    assert fleet.json("search", "--all", "boat", "--words", "--as-of", "2001-01-01")["total"] == 0
    everything = fleet.json("search", "--all", "boat bread", "--words")["results"]
    assert [hit for hit in everything if hit["agent"] in ("ann", "bob")] == some


def test_an_agent_named_like_the_query_is_not_meant(fleet: Line) -> None:
    """With --all the only word is the query, also if an agent has that name; times, not seqs, are moments."""
    fleet.ok("send", "bob", "I met ann.")
    assert fleet.json("search", "--all", "ann", "--words")["results"][0]["text"] == "I met ann."
    assert "is a seq, and each agent has seqs of its own" in fleet.fails("search", "--all", "x", "--as-of", "3")


def test_the_best_passage_is_shown_and_the_whole_on_request(fleet: Line) -> None:
    """A page shows the passage with the words of the query; --full and JSON have the whole text."""
    page = " ".join(fleet.ok("search", "ann", "harbour master", "--words").split())
    assert "The harbour master is Olaf." in page
    assert LONG.strip() not in page and "… is left out: --full shows all of it" in page
    full = " ".join(fleet.ok("search", "ann", "harbour master", "--words", "--full").split())
    assert LONG.strip() in full and "is left out" not in full
    (hit, *_) = fleet.json("search", "ann", "harbour master", "--words")["results"]
    assert LONG.strip() in hit["text"] and len(hit["passage"]) <= 260 and "Olaf" in hit["passage"]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("ann",), "give either a QUERY or --queries FILE"),
        ((), "give NAME and QUERY, or --all and QUERY"),
        (("--all",), "give either a QUERY"),
        (("--all", "ann", "boat"), "--all searches all agents: give QUERY without the NAME 'ann'"),
        (("--all", "--queries", "nowhere"), "--queries searches one agent"),
        (("ann", "x", "--in", "messages", "--tag", "a"), "--tag finds nothing with --in messages"),
        (("ann", "x", "--in", "archive", "--source", "a"), "--source finds nothing with --in archive"),
        (("ann", "x", "--in", "derived", "--tag", "a"), "--tag finds nothing with --in derived"),
        (("zz*", "x"), "no agent matches 'zz*'"),
    ],
)
def test_impossible_words_are_usage_errors(fleet: Line, words: tuple[str, ...], said: str) -> None:
    """The exit code is 2, and the error says what to change."""
    code, out, err = fleet("search", *words)
    assert (code, out) == (2, "") and said in err


def test_an_unreadable_agent_is_an_error_and_hides_no_other(fleet: Line) -> None:
    """The others are searched, the damage is reported, and the exit code is 1."""
    folder = next(path for path in fleet.root.glob("log/agent-*/*.open") if b"rye bread" in path.read_bytes())
    data = bytearray(folder.read_bytes())
    data[len(data) // 3] ^= 255
    folder.write_bytes(data)
    code, out, err = fleet("search", "--all", "boat", "--words", "--json")
    assert code == 1
    assert {hit["agent"] for hit in json.loads(out)["results"]} == {"ann", "bob"}
    assert "everlog: " in err


def test_what_was_derived_is_searched_with_what_it_rests_on(cli: Line) -> None:
    """--in derived finds insights and facts; the page names their sources; --ended shows facts that have ended."""
    first = first_seq()
    world_with(*derived(first), store=FileStore.create(cli.root, lambda: START, "derived"))
    (insight,) = cli.json("search", "sam", "Italian towns", "--in", "derived", "--words")["results"]
    assert insight["place"] == "derived" and insight["sources"] == [first, first + 2] and insight["outdated"]
    page = " ".join(cli.ok("search", "sam", "Italian towns", "--in", "derived", "--words").split())
    assert " insight · " in page and f"rests on seq {first}, seq {first + 2} · outdated" in page
    assert "lives in Rome" not in cli.ok("search", "sam", "Lea lives", "--in", "derived", "--words")
    ended = " ".join(cli.ok("search", "sam", "Lea lives", "--in", "derived", "--ended", "--words").split())
    assert "Lea lives in Rome." in ended and "· until 20" in ended
