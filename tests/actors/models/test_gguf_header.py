"""A file that is not a complete GGUF file is refused with a plain error before llama.cpp reads it."""

import struct
from pathlib import Path

import pytest

from everlog.actors.models import gguf_header, gguf_model
from everlog.actors.models.gguf_header import header_of
from everlog.actors.models.model_types import Catalogue
from everlog.events import BadInput
from tests.support.models.gguf_test_file import text, written

KEYS: dict[str, str | int] = {
    "general.architecture": "llama",
    "general.name": "Small",
    "llama.context_length": 2048,
    "tokenizer.chat_template": "{% for m in messages %}{{ m.content }}{% endfor %}",
}
WHOLE = written(KEYS)


def test_a_header_says_what_the_file_is() -> None:
    """Architecture, name, context length and template are read, also behind arrays."""
    header = header_of(WHOLE, "small.gguf")
    assert (header.architecture, header.name, header.context_length) == ("llama", "Small", 2048)
    assert header.chat_template == KEYS["tokenizer.chat_template"]
    assert not header.knows_tools
    assert header_of(written({**KEYS, "tokenizer.chat_template": "{% if tools %}"}), "x").knows_tools


def test_a_file_truncated_anywhere_is_reported_as_truncated() -> None:
    """For every shorter length the error says that the file is truncated."""
    for length in range(1, len(WHOLE), 7):
        with pytest.raises(BadInput, match=r"is cut off|is no GGUF file"):
            header_of(WHOLE[:length], "small.gguf")
    assert header_of(WHOLE, "small.gguf")


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "it is empty"),
        (b"<!doctype html><html>Sign in</html>", "it is a web page"),
        (b"version https://git-lfs.github.com/spec/v1\noid", "Git LFS"),
        (b"PK\x03\x04 something else", "it begins with"),
        (written(KEYS, version=9), "version 9, and versions 2 to 3"),
        (b"GGUF" + struct.pack("<IQQ", 3, 1, 2**60), "is damaged near byte"),
        (b"GGUF" + struct.pack("<IQQ", 3, 0, 1) + struct.pack("<Q", 1) + b"a" + struct.pack("<I", 77), "type 77"),
    ],
)
def test_files_that_are_no_model_are_named_in_the_error(content: bytes, said: str) -> None:
    """A web page, a Git LFS pointer, another format, an unknown version and nonsense are each named in the error."""
    with pytest.raises(BadInput, match=said):
        header_of(content, "small.gguf")


def an_array(kind: int, count: int, values: bytes = b"") -> bytes:
    """Return a file whose only key is an array that claims `count` values."""
    return b"GGUF" + struct.pack("<IQQ", 3, 0, 1) + text("a") + struct.pack("<IIQ", 9, kind, count) + values


def a_tensor(dimensions: int, sizes: bytes = b"") -> bytes:
    return b"GGUF" + struct.pack("<IQQ", 3, 1, 0) + text("a") + struct.pack("<I", dimensions) + sizes


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"GGUF" + struct.pack("<IQQQ", 3, 0, 1, 2**63), "is cut off: it has 32 bytes"),
        (b"GGUF" + struct.pack("<IQQQ", 3, 0, 1, 2**64 - 1), "is cut off"),
        (an_array(0, 2**63), "is cut off"),
        (an_array(12, 2**62), "is cut off"),
        (an_array(8, 2**63, bytes(1000)), "is cut off: it has 1,049 bytes and should have at least 73,786"),
        (an_array(8, 4_000_001, bytes(8 * 4_000_001)), "4,000,001 texts, above the limit of 4,000,000"),
        (an_array(9, 1, struct.pack("<IIQ", 9, 9, 1) * 1000), "an array of values of type 9"),
        (a_tensor(2**32 - 1), "a tensor of 4,294,967,295 dimensions; there are at most 4"),
        (a_tensor(2_000_000, b"\xff" * 16_000_000), "a tensor of 2,000,000 dimensions"),
        (a_tensor(1, struct.pack("<QIQ", 2**63, 24, 2**63)), "is cut off"),
        (written({**KEYS, "general.alignment": 0}), "its alignment is 0"),
    ],
)
def test_a_length_beyond_the_file_ends_at_once(content: bytes, said: str) -> None:
    """Lengths of 2^63, arrays in arrays and tensors with millions of dimensions are refused; they are neither counted
    through nor multiplied.
    """
    with pytest.raises(BadInput, match=said):
        header_of(content, "small.gguf")


def test_a_text_that_is_longer_than_any_is_not_copied(monkeypatch: pytest.MonkeyPatch) -> None:
    """A flipped bit in a length does not copy gigabytes of weights into memory as a name."""
    monkeypatch.setattr(gguf_header, "TEXT_BYTES_MAX", 1000)
    with pytest.raises(BadInput, match="a text of 1,001 bytes, above the limit of 1,000"):
        header_of(written({**KEYS, "general.name": "x" * 1001}), "small.gguf")


def test_any_flipped_bit_of_a_header_is_refused_or_harmless() -> None:
    """Each bit of the whole header is flipped: the file is refused in words, or its header can still be used."""
    refused = 0
    for bit in range(8 * WHOLE.index(b"weights")):
        content = bytearray(WHOLE)
        content[bit // 8] ^= 1 << bit % 8
        try:
            assert 0 < header_of(bytes(content), "small.gguf").context_length < 2**31
        except BadInput:
            refused += 1
    assert refused > 1000


@pytest.mark.parametrize("length", [None, 0, 2**31, "many"])
def test_a_file_that_was_made_for_no_tokens_is_refused(length: int | str | None) -> None:
    """A missing or invalid context length is refused: it would make llama.cpp end the process."""
    keys = {name: value for name, value in KEYS.items() if name != "llama.context_length"}
    with pytest.raises(BadInput, match=r"small.gguf cannot be run as a model: llama.context_length is"):
        header_of(written(keys if length is None else {**keys, "llama.context_length": length}), "small.gguf")


def test_a_missing_file_and_a_folder_are_refused(tmp_path: Path) -> None:
    """Both errors name the path."""
    for path in (tmp_path / "none.gguf", tmp_path):
        with pytest.raises(BadInput, match=str(path)):
            gguf_model.header(path)


def test_the_window_is_the_files_own_up_to_a_limit(tmp_path: Path) -> None:
    """The window is the file's context length, up to a limit; its template decides the calling format."""
    path = tmp_path / "small.gguf"
    path.write_bytes(written({**KEYS, "llama.context_length": 4096}))
    known = gguf_model.defaults_of(str(path), Catalogue())
    assert (known.window, known.calling) == (4096, "schema")
    path.write_bytes(written({**KEYS, "llama.context_length": 131072, "tokenizer.chat_template": "{{ tools }}"}))
    known = gguf_model.defaults_of(str(path), Catalogue())
    assert (known.window, known.calling) == (8192, "native")
