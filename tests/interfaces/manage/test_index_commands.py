"""The commands for the index of memories: status, check and rebuild; and searches that use the index."""

import json

import pytest

from everlog.actors.archive import embedder_choice
from everlog.store.archive.archive import FOLDER
from tests.support.cli.command_line import Line
from tests.support.models.loopback_server import serving

MEMORY = "The dog is called Rex"
MEANT = "animal companion"
"""A query without any word of the memory."""


def test_before_anything_was_searched_there_is_no_index_and_status_says_so(cli: Line) -> None:
    cli.ok("create", "sam")
    cli.ok("archive", "insert", "sam", MEMORY)
    assert "no index" in cli.ok("archive", "status")
    assert cli.json("archive", "status")["generation"] == 0


def test_a_search_finds_by_meaning_and_by_words_alone_it_does_not(cli: Line) -> None:
    """With --words the archive is never opened."""
    cli.ok("create", "sam")
    cli.ok("archive", "insert", "sam", MEMORY)
    assert cli.json("archive", "search", "sam", MEANT, "--words")["total"] == 0
    assert not (cli.root / FOLDER).exists()
    found = cli.json("archive", "search", "sam", MEANT)
    assert [hit["text"] for hit in found["results"]] == [MEMORY]
    assert found["by_meaning"]


def test_the_index_is_compared_with_the_logs_and_rebuilt_from_them(cli: Line) -> None:
    """A rebuild does not embed a text again."""
    cli.ok("create", "sam")
    cli.ok("archive", "insert", "sam", MEMORY)
    cli.json("archive", "search", "sam", MEANT)
    assert cli.json("archive", "check") == {"ok": True, "faults": []}
    assert "agrees with the logs" in cli.ok("archive", "check")
    before = cli.json("archive", "status")
    made = cli.json("archive", "rebuild")
    assert made["rows"] == before["memories"]
    assert made["embedded"] == 0
    assert "Rebuilt the index" in cli.ok("archive", "rebuild")
    after = cli.json("archive", "status")
    assert after["generation"] > before["generation"]
    assert (after["memories"], after["behind"]) == (before["memories"], 0)
    assert [hit["text"] for hit in cli.json("archive", "search", "sam", MEANT)["results"]] == [MEMORY]


@pytest.mark.beside_store("the server has its own log of warnings")
def test_foreign_rows_are_refused_and_a_rebuild_is_the_cure(cli: Line) -> None:
    """A search reports the foreign rows and searches by words instead; no memory is lost."""
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


def test_an_unknown_embedder_is_refused_with_the_known_ones(cli: Line) -> None:
    cli.ok("create", "sam")
    cli.ok("archive", "insert", "sam", MEMORY)
    code, _, err = cli("archive", "rebuild", "--embedder", "word2vec")
    assert code == 1
    assert "'word2vec'" in err
    assert "wordllama-256" in err


def letters(_headers: dict[str, str], body: bytes) -> tuple[int, str]:
    """An embeddings endpoint that counts letters: eight numbers for each text."""
    texts = json.loads(body)["input"]
    rows = [[1.0 + sum(ord(letter) % 8 == place for letter in text) for place in range(8)] for text in texts]
    return 200, json.dumps({"data": [{"index": index, "embedding": row} for index, row in enumerate(rows)]})


@pytest.mark.beside_store("the server has its own log of warnings")
def test_another_embedder_takes_over_with_a_rebuild_and_is_kept_to(cli: Line, monkeypatch: pytest.MonkeyPatch) -> None:
    """The address of the endpoint is stored with its vectors; the key is not. Without the endpoint, search by words
    still works.
    """
    monkeypatch.setenv("OPENAI_API_KEY", "sk-very-secret-0123456789")
    cli.ok("create", "sam")
    cli.ok("archive", "insert", "sam", MEMORY)
    cli.json("archive", "search", "sam", MEANT)
    with serving((200, "")) as endpoint:
        endpoint.answer = letters
        made = cli.json("archive", "rebuild", "--embedder", "letters", "--base-url", endpoint.url)
        assert (made["dimension"], made["embedded"] > 0) == (8, True)
        assert made["embedder"].startswith("letters at http://127.0.0.1")
        cli.ok("archive", "insert", "sam", "The cat is called Tom")
        assert cli.json("archive", "search", "sam", "cat")["by_meaning"]
        assert cli.json("archive", "check")["ok"]
        assert cli.json("archive", "rebuild")["embedded"] == 0
    code, out, err = cli("archive", "search", "sam", "cat", "--json")
    assert code == 0
    assert "The cat is called Tom" in out
    assert "words alone" in err
    for path in (path for path in cli.root.rglob("*") if path.is_file()):
        assert b"sk-very-secret" not in path.read_bytes()
    cli.ok("archive", "rebuild", "--embedder", "wordllama-256")
    assert cli.json("archive", "search", "sam", MEANT)["results"][0]["text"] == MEMORY


def test_an_endpoint_that_fails_half_way_changes_nothing_and_a_second_try_continues(
    cli: Line, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Texts that were embedded before the failure are stored; the old index still answers."""
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    monkeypatch.setattr(embedder_choice, "REQUEST_TEXTS", 1)
    cli.ok("create", "sam")
    for name in ("Rex", "Tom", "Ann"):
        cli.ok("archive", "insert", "sam", f"Somebody is called {name}")
    cli.json("archive", "search", "sam", "Tom")
    with serving((200, "")) as endpoint:
        asked = []

        def failing(headers: dict[str, str], body: bytes) -> tuple[int, str]:
            asked.append(body)
            return letters(headers, body) if len(asked) < 3 else (401, '{"error": {"message": "expired"}}')

        endpoint.answer = failing
        code, _, err = cli("archive", "rebuild", "--embedder", "letters", "--base-url", endpoint.url)
        assert code == 1
        assert "refused the key" in err
        assert cli.json("archive", "status")["embedder"] == "wordllama-256"
        assert cli.json("archive", "search", "sam", "Tom")["total"] >= 1
        endpoint.answer = letters
        assert cli.json("archive", "rebuild", "--embedder", "letters", "--base-url", endpoint.url)["dimension"] == 8


def test_the_address_of_an_embedder_holds_no_password(cli: Line) -> None:
    cli.ok("create", "sam")
    code, _, err = cli("archive", "rebuild", "--embedder", "letters", "--base-url", "http://me:secret@127.0.0.1:1/v1")
    assert code == 1
    assert "holds a name or password" in err
    assert "secret" not in err
