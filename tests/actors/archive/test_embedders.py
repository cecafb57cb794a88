"""Embedders: their promises, and errors for endpoints that break them. The endpoints are servers on this machine."""

import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from everlog.actors.archive.embedder_choice import EndpointEmbedder, embedder_by_recorded_name, embedder_for
from everlog.events import EmbedderError
from everlog.store.embedding import embedder as module
from everlog.store.embedding.embedder import PIECE_CHARS, TEXT_CHARS_MAX, Embedder, WordLlama, embedder_of, message_text
from tests.support.models.loopback_server import serving

KEY = "sk-very-secret-0123456789"


@pytest.fixture(autouse=True)
def key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)


def vectors(*rows: Sequence[float]) -> tuple[int, str]:
    """Return a server's answer with these vectors in reverse order; each vector has its index."""
    data = [{"index": index, "embedding": list(row)} for index, row in enumerate(rows)]
    return 200, json.dumps({"data": data[::-1]})


def asking(url: str, dimension: int | None = None) -> tuple[Embedder, list[float]]:
    """Return an embedder for that server, and the list of its waits in seconds; no wait takes real time."""
    waited: list[float] = []
    made = embedder_for("some-model", url, dimension)
    assert isinstance(made, EndpointEmbedder)
    made._wait = waited.append
    return made, waited


@pytest.fixture(scope="module")
def llama() -> WordLlama:
    return WordLlama()


def test_each_text_has_a_row_of_length_one_and_a_text_without_words_zeros(llama: WordLlama) -> None:
    """Empty texts and texts without letters or digits have a row of zeros; no row is NaN."""
    rows = llama.embed(["I sail.", "", " \n", "!?", "_", "\u5e06\u8239", "\x00a", "8"])
    assert rows.dtype == np.float32 and rows.shape == (8, llama.dimension)
    assert np.linalg.norm(rows, axis=1) == pytest.approx([1, 0, 0, 0, 0, 1, 1, 1], abs=1e-5)
    assert llama.embed([]).shape == (0, llama.dimension)


def test_a_vector_does_not_depend_on_its_batch(llama: WordLlama) -> None:
    """A text has the same vector whether it is embedded alone or in any batch."""
    texts = ["I sail.", "word " * 5000, "My dog barks at boats."] * 90
    together = llama.embed(texts)
    for place in (0, 1, 2, 200):
        assert np.array_equal(together[place], llama.embed([texts[place]])[0])


def test_similar_meanings_have_similar_vectors(llama: WordLlama) -> None:
    """A boat is nearer to a ship than to a tax."""
    boat, ship, tax = llama.embed(["the boat", "a ship", "income tax"])
    assert boat @ ship > boat @ tax + 0.2


def test_a_text_without_end_is_embedded_by_its_beginning(llama: WordLlama) -> None:
    """A long text is embedded in parts, so that memory is bounded; text after the limit changes nothing."""
    whole = "sailing boats " * (TEXT_CHARS_MAX // 10)
    assert len(whole) > TEXT_CHARS_MAX > PIECE_CHARS
    one, same = llama.embed([whole, whole + "taxes " * 50_000])
    assert np.array_equal(one, same)


def test_the_vectors_of_words_are_a_map_of_their_file() -> None:
    """The 16 MB of vectors are pages of the file, which all processes of a machine share, and no copy of them."""
    _, vectors = module._load(256)
    assert isinstance(vectors.base, np.memmap) and not vectors.flags.writeable


@pytest.mark.parametrize("damage", ["header", "name", "type", "end"])
def test_a_damaged_file_of_vectors_is_refused(tmp_path: Path, damage: str) -> None:
    """A file without a header, without the vectors, with numbers of another type, or cut off is an error of a kind that
    loading reports as EmbedderError.
    """
    entry = {"dtype": "F32" if damage == "type" else "F16", "shape": [4, 2], "data_offsets": [0, 16]}
    header = json.dumps({"other" if damage == "name" else "numbers": entry}).encode()
    data = len(header).to_bytes(8, "little") + (b"#" * len(header) if damage == "header" else header)
    (tmp_path / "file").write_bytes(data + bytes(8 if damage == "end" else 16))
    with pytest.raises((ValueError, LookupError)):
        module._mapped(tmp_path / "file", "numbers")


def test_neither_a_model_nor_the_package_is_loaded_by_name_alone() -> None:
    """A process that only names an embedder loads neither its model nor its package."""
    probe = (
        "import sys; from everlog.store.embedding.embedder import embedder_of; embedder_of(); "
        "import everlog.actors.archive.embedder_choice; "
        "print(*[name for name in ('wordllama', 'tokenizers', 'openai', 'lancedb') if name in sys.modules])"
    )
    run = subprocess.run([sys.executable, "-c", probe], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == ""


def test_an_unknown_name_is_refused_with_the_known_ones() -> None:
    """A misspelt name of the default embedder is refused with the right spelling, with a server or without."""
    with pytest.raises(EmbedderError, match="wordllama-256"):
        embedder_of("wordlama")


def test_the_embedded_text_of_a_message_has_its_speaker() -> None:
    """The embedded text is the name or role and the words of a message; a message without words is not embedded."""
    assert message_text("user", "Ann", "I sail.") == "Ann: I sail."
    assert message_text("assistant", "", "Do you?") == "assistant: Do you?"
    assert message_text("user", "Ann", " ... ") == ""


def test_a_missing_key_is_reported_before_anything_is_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    """The error says what to do: set the key, use a server of your own, or use the embedder that needs no key."""
    monkeypatch.delenv("OPENAI_API_KEY")
    with pytest.raises(EmbedderError, match="OPENAI_API_KEY") as told:
        embedder_for("text-embedding-3-small")
    assert "wordllama-256" in str(told.value)


def test_an_endpoint_is_asked_in_batches_and_its_rows_come_in_our_order() -> None:
    """130 texts are two requests; texts without words are not sent; rows have length 1."""
    with serving(vectors([0, 2]), vectors(*([[3, 4]] * 127), [0, 5]), vectors([1, 0], [0, 7])) as server:
        embedder, _ = asking(server.url)
        assert embedder.dimension == 2
        rows = embedder.embed(["a"] * 128 + [" "] + ["b", "c"])
    sent = [json.loads(body) for body in server.bodies]
    assert [len(body["input"]) for body in sent] == [1, 128, 2]
    assert {body["model"] for body in sent} == {"some-model"}
    assert rows[0] == pytest.approx([0.6, 0.8])
    assert rows[127:].tolist() == [[0, 1], [0, 0], [1, 0], [0, 1]]


def test_a_server_that_is_busy_is_asked_again() -> None:
    """Retries follow the class of the error, with growing waits."""
    with serving((503, "busy"), (429, "slow down"), vectors([1, 0])) as server:
        embedder, waited = asking(server.url, 2)
        assert embedder.embed(["a"]).tolist() == [[1, 0]]
    assert len(waited) == 2 and waited[0] < waited[1]


@pytest.mark.parametrize(("status", "body", "asked"), [
    (401, f"expired: {KEY}", 1),
    (402, "pay", 1),
    (404, f"no model for {KEY}", 1),
    (500, f"oops {KEY}", 4),
])  # fmt: skip
def test_a_failure_is_reported_with_its_cause_and_never_with_the_key(status: int, body: str, asked: int) -> None:
    """Permanent failures are not retried; temporary ones are, a few times."""
    with serving((status, body)) as server, pytest.raises(EmbedderError) as told:
        asking(server.url, 2)[0].embed(["a"])
    assert len(server.bodies) == asked
    assert "some-model" in str(told.value)
    assert KEY not in str(told.value) + repr(told.value.__cause__)


@pytest.mark.parametrize(("answer", "said"), [
    (vectors([1, 0, 0]), "3 numbers, where 2 were expected"),
    (vectors([1, 0], [1, 0]), "2 vectors for 1 texts"),
    ((200, '{"data":[]}'), "0 vectors for 1 texts"),
    ((200, "<html>"), "no list of embeddings"),
    ((200, '{"data":[{"index":0,"embedding":["a"]}]}'), "no list of embeddings"),
    ((200, '{"data":[{"index":0,"embedding":[1e999,0]}]}'), "embeddings|none"),
])  # fmt: skip
def test_malformed_embeddings_are_refused(answer: tuple[int, str], said: str) -> None:
    """A row of another size, a missing row and a value that is not a number are refused."""
    with serving(answer) as server, pytest.raises(EmbedderError, match=said):
        asking(server.url, 2)[0].embed(["a"])


def test_finished_batches_of_an_interrupted_embedding_are_kept() -> None:
    """Finished batches of an interrupted embedding are kept, and only the rest is requested again."""
    with serving(vectors([1, 0]), (400, "no"), vectors([0, 1])) as server:
        embedder, _ = asking(server.url, 2)
        kept: dict[str, Any] = {"a": embedder.embed(["a"])[0]}
        with pytest.raises(EmbedderError):
            embedder.embed(["b"])
        kept["b"] = embedder.embed(["b"])[0]
    assert [json.loads(body)["input"] for body in server.bodies] == [["a"], ["b"], ["b"]]
    assert np.array_equal(np.stack(list(kept.values())), np.eye(2))


def test_a_missing_server_is_reported_with_its_address() -> None:
    """The error names the address of the server."""
    with serving(vectors([1, 0])) as server:
        url = server.url
    with pytest.raises(EmbedderError, match="cannot be reached") as told:
        asking(url, 2)[0].embed(["a"])
    assert url in str(told.value)


def test_a_stored_endpoint_address_gets_no_text_and_no_key(monkeypatch: pytest.MonkeyPatch) -> None:
    """No text is sent to another machine because a stored name gives its address, and the key is sent only to the
    address in the environment.
    """
    with pytest.raises(EmbedderError, match="OPENAI_BASE_URL is another address"):
        embedder_by_recorded_name("some-model at http://192.0.2.1/v1/", 3)
    with serving(vectors((0, 3, 4))) as endpoint:
        embedder_by_recorded_name(f"some-model at {endpoint.url}/", 3).embed(["I sail"])
        monkeypatch.setenv("OPENAI_BASE_URL", endpoint.url)
        embedder_by_recorded_name(f"some-model at {endpoint.url}/", 3).embed(["I sail"])
    without, granted = (headers["authorization"] for headers in endpoint.headers)
    assert KEY not in without
    assert KEY in granted
    assert embedder_by_recorded_name("wordllama-256", 256).name == "wordllama-256"
