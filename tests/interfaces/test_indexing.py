"""The commands that look after the index of memories: status, check, rebuild; and searches that use it."""

import pytest

from store.archive.archive import FOLDER
from tests.interfaces.line import Line

MEMORY = "The dog is called Rex"
MEANT = "animal companion"
"""No word of it stands in the memory."""


def test_before_anything_was_searched_there_is_no_index_and_status_says_so(cli: Line) -> None:
    cli.ok("create", "sam")
    cli.ok("archive", "insert", "sam", MEMORY)
    assert "no index" in cli.ok("archive", "status")
    assert cli.json("archive", "status")["generation"] == 0


def test_a_search_finds_by_meaning_and_by_words_alone_it_does_not(cli: Line) -> None:
    """--words never opens the archive."""
    cli.ok("create", "sam")
    cli.ok("archive", "insert", "sam", MEMORY)
    assert cli.json("archive", "search", "sam", MEANT, "--words")["total"] == 0
    assert not (cli.root / FOLDER).exists()
    found = cli.json("archive", "search", "sam", MEANT)
    assert [hit["text"] for hit in found["results"]] == [MEMORY]
    assert found["by_meaning"]


def test_the_index_is_held_against_the_logs_and_made_anew_from_them(cli: Line) -> None:
    """What was embedded once is not embedded again."""
    cli.ok("create", "sam")
    cli.ok("archive", "insert", "sam", MEMORY)
    cli.json("archive", "search", "sam", MEANT)
    assert cli.json("archive", "check") == {"ok": True, "faults": []}
    assert "says what the logs say" in cli.ok("archive", "check")
    before = cli.json("archive", "status")
    made = cli.json("archive", "rebuild")
    assert made["rows"] == before["memories"] + before["messages"]
    assert made["embedded"] == 0
    assert "Made the index anew" in cli.ok("archive", "rebuild")
    after = cli.json("archive", "status")
    assert after["generation"] > before["generation"]
    assert (after["memories"], after["behind"]) == (before["memories"], 0)
    assert [hit["text"] for hit in cli.json("archive", "search", "sam", MEANT)["results"]] == [MEMORY]


def test_rows_that_somebody_else_wrote_are_refused_and_a_rebuild_is_the_cure(cli: Line) -> None:
    """A search says so and goes by words; nothing is lost."""
    lancedb = pytest.importorskip("lancedb")
    cli.ok("create", "sam")
    cli.ok("archive", "insert", "sam", MEMORY)
    cli.json("archive", "search", "sam", MEANT)
    database = lancedb.connect(cli.root / FOLDER)
    (name,) = (path.stem for path in (cli.root / FOLDER).glob("*.lance"))
    database.open_table(name).delete("true")
    code, _, err = cli("archive", "check")
    assert code == 1
    assert "everlog archive rebuild" in err
    code, out, err = cli("archive", "search", "sam", "dog")
    assert code == 0
    assert MEMORY in out
    assert "everlog archive rebuild" in err
    cli.ok("archive", "rebuild")
    assert [hit["text"] for hit in cli.json("archive", "search", "sam", MEANT)["results"]] == [MEMORY]


def test_an_embedder_that_nobody_knows_is_named_with_those_that_there_are(cli: Line) -> None:
    cli.ok("create", "sam")
    cli.ok("archive", "insert", "sam", MEMORY)
    code, _, err = cli("archive", "rebuild", "--embedder", "word2vec")
    assert code == 1
    assert "'word2vec'" in err
    assert "wordllama-256" in err
