"""`everlog load` over a folder of 300 real documents: loaded, changed, loaded again, pruned, shared."""

import unicodedata
from pathlib import Path

import pytest

from everlog.actors.memory.source_service import Sources
from everlog.events import DocumentLoaded, event_of
from everlog.store import FileStore, stream_of
from tests.support.cli.command_line import Line
from tests.support.cli.document_folder import Lines, dialogues, letters, library, pages, sessions, write

DOCUMENTS = 300
"""Documents of the largest folder, in the deep suite."""


@pytest.fixture(scope="module")
def texts(data_dir: Path) -> list[Lines]:
    """Return texts by name: sections of this project's pages, long conversations, and dialogues up to the required
    number.
    """
    own = [*pages()[:100], *sessions(data_dir)[:60]]
    return [*own, *dialogues(data_dir, DOCUMENTS - len(own))]


def few(texts: list[Lines], count: int) -> list[Lines]:
    """Return so many of the texts, of each kind: from their whole length."""
    return texts[:: len(texts) // count][:count]


def held(cli: Line, source: str) -> dict[str, str]:
    """Return the texts of a source's documents, by name."""
    store = FileStore(cli.root, cli.clock.now)
    stream = stream_of(source)
    rows = Sources(store, clock=cli.clock, ids=cli.world.ids).documents(source)
    texts = {}
    for row in rows:
        (record,) = store.reader(stream).read(stream, row["seq"], row["seq"])
        event = event_of(record)
        assert isinstance(event, DocumentLoaded)
        texts[row["document"]] = event.text
    return texts


@pytest.mark.parametrize("count", [60, pytest.param(DOCUMENTS, marks=[pytest.mark.long, pytest.mark.commands])])
def test_a_folder_of_documents_is_loaded_changed_and_loaded_again(
    cli: Line, tmp_path: Path, texts: list[Lines], count: int
) -> None:
    """The source has the text of each file of every kind; loading again writes changed texts, and removes the documents
    of deleted files.
    """
    folder = tmp_path / "handbook"
    made = library(folder, few(texts, count))
    assert len(made) == count
    first = cli.json("load", "sam", str(folder), "--source", "handbook")
    assert (first["documents"], first["new"], first["failed"], first["attached"]) == (count, count, [], True)
    there = held(cli, "handbook")
    assert there.keys() == made.keys()
    for name, lines in made.items():
        for _, words in lines:
            lost = words.encode("latin-1", "replace").decode("latin-1") if name.endswith(".pdf") else words
            assert letters(lost) in letters(there[name]), name

    again = cli.json("load", "sam", str(folder), "--source", "handbook")
    assert (again["new"], again["changed"], again["unchanged"], again["attached"]) == (0, 0, count, False)

    changes = len(list(made)[::25])
    for name in list(made)[::25]:
        write(folder / name, [*made[name], ("postscript", "The tide turns at noon.")])
    gone = list(made)[7::50]
    for name in gone:
        (folder / name).unlink()
    write(folder / "shelf-9" / "new.md", [("news", "A lighthouse was built.")])
    changed = cli.json("load", "sam", str(folder), "--source", "handbook")
    assert (changed["new"], changed["changed"], changed["unchanged"]) == (1, changes, count - changes - len(gone))
    assert sorted(changed["vanished"]) == sorted(gone)
    assert changed["removed"] == 0
    assert set(gone) < held(cli, "handbook").keys()

    pruned = cli.json("load", "sam", str(folder), "--source", "handbook", "--prune")
    assert (pruned["removed"], pruned["vanished"]) == (len(gone), [])
    now = held(cli, "handbook")
    assert now.keys() == ({*made, "shelf-9/new.md"} - set(gone))
    assert sum("The tide turns at noon." in text for text in now.values()) == changes
    assert cli.ok("log", "check", "--all", "--deep")
    assert cli.ok("log", "seal", "--all")
    assert held(cli, "handbook") == now


def some(folder: Path, **files: str) -> str:
    folder.mkdir(exist_ok=True)
    for name, text in files.items():
        (folder / f"{name}.txt").write_text(text)
    return str(folder)


def test_two_agents_share_a_source_that_lies_in_one_log(cli: Line, tmp_path: Path) -> None:
    """Each agent lists its attached sources; the documents are once in the log of the source, and in no agent's log."""
    cli.ok("load", "sam", some(tmp_path / "a", one="The tide turns.", two="The wind drops."), "--source", "sea")
    cli.ok("create", "ann")
    assert cli.json("attach", "ann", "sea") == {"agent": "ann", "source": "sea", "attached": True, "changed": True}
    assert cli.json("attach", "ann", "sea")["changed"] is False
    (sea,) = cli.json("sources")
    assert sea == {"source": "sea", "documents": 2, "characters": 30, "agents": ["ann", "sam"]}
    assert cli.json("sources", "ann") == [sea]
    for name in ("ann", "sam"):
        kinds = [record["type"] for record in cli.lines("events", name)]
        assert kinds.count("source_attached") == 1
        assert "document_loaded" not in kinds
    assert len(cli.lines("events", "source:sea")) == 2
    assert "one.txt: The tide turns." in cli.ok("events", "source:sea")
    assert cli.json("detach", "ann", "sea")["attached"] is False
    assert cli.json("sources", "ann") == []
    assert "cannot search a source 'sea'; its sources: none" in cli.fails("detach", "ann", "sea")
    assert [one["agents"] for one in cli.json("sources")] == [["sam"]]
    cli.ok("delete", "sam", "--yes")
    assert [one["agents"] for one in cli.json("sources")] == [[]]


def test_a_source_is_no_agent(cli: Line, tmp_path: Path) -> None:
    """A source is in no list of agents and cannot get messages; commands for logs include sources."""
    cli.ok("load", "sam", some(tmp_path / "a", one="The tide turns."), "--source", "sea")
    assert [one["agent"] for one in cli.json("agents")] == ["sam"]
    for command in ("verify", "rebuild"):
        assert "source:" not in cli.ok(command, "--all")
    for command in (["create"], ["chat"], ["send", "hello"], ["move", "--placement", "dedicated"], ["delete", "--yes"]):
        assert "names that begin with 'source:'" in cli.fails(command[0], "source:sea", *command[1:])
    assert "names that begin with 'source:'" in cli.fails("create", "source:new")
    assert "source:new" not in FileStore(cli.root, cli.clock.now).assigned()
    for command in (["check"], ["check", "--deep"], ["stats"], ["seal"]):
        assert "source:sea" in cli.ok("log", command[0], "--all", *command[1:])
    assert cli.ok("erase", "source:sea", "--all", "--yes")
    assert cli.json("sources")[0]["documents"] == 0
    assert "tide" not in cli.ok("events", "source:sea", "--json")


def test_an_old_agent_of_such_a_name_is_left_alone(cli: Line, tmp_path: Path) -> None:
    """No document is written into the log of an agent that was named `source:...` before sources existed."""
    store = FileStore.create(cli.root, cli.clock.now, "a store")
    store.register("source:old")
    cli.ok("create", "sam")
    log, own = store.open("source:old", "test"), store.reader("sam").read("sam")
    log.append("source:old", 0, [draft_of(record) for record in own])
    log.close()
    before = cli.ok("events", "source:old", "--json")
    refused = cli.fails("load", "sam", some(tmp_path / "a", one="The tide turns."), "--source", "old")
    assert "'source:old' is an agent" in refused
    assert cli.ok("events", "source:old", "--json") == before


def draft_of(record):
    from everlog.events import draft

    return draft(event_of(record), event_id=record.event_id, recorded_at=record.recorded_at, turn=0, step=0)


def test_vanished_files_are_reported_of_the_loaded_folder_only(cli: Line, tmp_path: Path) -> None:
    """In a source with two folders, pruning one keeps the documents of the other, and so does loading a single file."""
    one, two = some(tmp_path / "a", one="The tide turns.", three="Fog."), some(tmp_path / "b", two="The wind drops.")
    cli.ok("load", "sam", one, two)
    (tmp_path / "a" / "one.txt").unlink()
    assert cli.json("load", "sam", two, "--prune")["removed"] == 0
    assert cli.json("load", "sam", str(tmp_path / "a" / "three.txt"), "--prune")["removed"] == 0
    assert cli.json("load", "sam", one)["vanished"] == ["one.txt"]
    assert "No longer found where they were loaded from: one.txt. --prune removes them." in cli.ok("load", "sam", one)
    assert "1 removed" in cli.ok("load", "sam", one, "--prune")
    assert sorted(held(cli, "sam")) == ["three.txt", "two.txt"]


def test_what_cannot_be_read_any_more_has_not_vanished(cli: Line, tmp_path: Path) -> None:
    """A file that is unreadable at the next load keeps its document, even with --prune."""
    folder = some(tmp_path / "a", one="The tide turns.", two="The wind drops.")
    cli.ok("load", "sam", folder)
    (tmp_path / "a" / "one.txt").write_bytes(b"\xff\xff\xff")
    code, out, err = cli("load", "sam", folder, "--prune")
    assert code == 1
    assert err.startswith("everlog: one.txt: it is not text in UTF-8")
    assert "1 could not be read" in out
    assert held(cli, "sam")["one.txt"] == "The tide turns."


def test_two_files_of_one_name_are_distinguished_or_refused(cli: Line, tmp_path: Path) -> None:
    """A second folder cannot replace documents that the same load has just written; the same file given twice is one
    document.
    """
    one, two = some(tmp_path / "a", log="The tide turns."), some(tmp_path / "b", log="The wind drops.")
    code, out, err = cli("load", "sam", one, two, str(tmp_path / "a" / "log.txt"), "--json")
    assert code == 1
    assert "log.txt: another document of this load has the same name" in err
    assert '"documents":1' in out


def test_a_source_in_use_is_refused_and_nothing_is_loaded(cli: Line, tmp_path: Path) -> None:
    """While another process loads into the source, a load fails with the name and number of that process."""
    folder = some(tmp_path / "a", one="The tide turns.")
    cli.ok("load", "sam", folder, "--source", "sea")
    (tmp_path / "a" / "one.txt").write_text("The tide has turned.")
    log = FileStore(cli.root, cli.clock.now).open(stream_of("sea"), "everlog load")
    try:
        refused = cli.fails("load", "sam", folder, "--source", "sea")
    finally:
        log.close()
    assert "(everlog load). Close it there and run the command again. Nothing was changed." in refused
    assert held(cli, "sea") == {"one.txt": "The tide turns."}


@pytest.mark.parametrize(
    ("argv", "said"),
    [
        (["load", "sam", "/no/such/folder"], "there is no such file or folder"),
        (["load", "sam", "x.txt", "--source", " "], "a source name must have 1 to 248 bytes"),
        (["load", "sam", "x.txt", "--source", "s" * 249], "a source name must have 1 to 248 bytes"),
        (["load", "source:sea", "x.txt"], "there is no such file or folder"),
        (["attach", "sam", "sea"], "There is no source 'sea'. Did you mean seas?"),
        (["attach", "nobody", "seas"], "There is no agent 'nobody' here"),
        (["sources", "nobody"], "There is no agent 'nobody' here"),
        (["sources", "--source", "sea"], "There is no source 'sea' in this store; its sources: 'seas'"),
    ],
)
def test_what_cannot_be_is_refused_before_anything_is_written(argv, said, cli: Line, tmp_path: Path) -> None:
    cli.ok("load", "sam", some(tmp_path / "a", one="The tide turns."), "--source", "seas")
    before = cli.ok("log", "stats", "--all", "--json")
    assert said in cli.fails(*argv)
    assert cli.ok("log", "stats", "--all", "--json") == before


def test_a_dry_run_says_what_a_load_does(cli: Line, tmp_path: Path) -> None:
    """A dry run reports the counts and names of the real load, and writes nothing."""
    folder = some(tmp_path / "a", one="The tide turns.", two="The wind drops.", three="Fog.")
    cli.ok("load", "sam", folder)
    some(tmp_path / "a", one="The tide has turned.", four="Rain.")
    (tmp_path / "a" / "two.txt").unlink()
    before = held(cli, "sam")
    for more in ([], ["--prune"]):
        planned = cli.json("load", "sam", folder, "--dry-run", *more)
        assert held(cli, "sam") == before
    assert cli.json("load", "sam", folder, "--prune") == {**planned, "dry_run": False}
    assert (planned["new"], planned["changed"], planned["unchanged"], planned["removed"]) == (1, 1, 1, 1)


@pytest.mark.beside_store("a server has a store")
def test_a_dry_run_makes_neither_store_nor_agent(cli: Line, tmp_path: Path) -> None:
    folder = some(tmp_path / "a", one="The tide turns.")
    assert "Would load 1 document (1 new) into source sam." in cli.ok("load", "sam", folder, "--dry-run")
    assert not cli.root.exists()


def test_paths_may_come_after_options(cli: Line, tmp_path: Path) -> None:
    one, two = some(tmp_path / "a", one="The tide turns."), some(tmp_path / "b", two="The wind drops.")
    assert cli.json("load", "sam", "--source", "sea", one, two)["documents"] == 2
    assert cli("load", "sam")[0] == 2


def test_a_source_is_the_same_however_its_name_is_written(cli: Line, tmp_path: Path) -> None:
    """A composed and a decomposed accent are the same name: the source is loaded once, attached once, and detached
    completely.
    """
    (tmp_path / "a.txt").write_text("the house opens at nine")
    apart, within = unicodedata.normalize("NFD", "café"), unicodedata.normalize("NFC", "café")
    cli.ok("load", "bob", str(tmp_path / "a.txt"), "--source", apart)
    cli.ok("attach", "bob", within)
    (source,) = cli.json("sources")
    assert (source["source"], source["agents"]) == (within, ["bob"])
    assert cli.json("archive", "search", "bob", "house")["total"] == 1
    cli.ok("detach", "bob", within)
    assert cli.json("archive", "search", "bob", "house")["total"] == 0
