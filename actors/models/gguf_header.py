"""Read the header of a GGUF file, just far enough to recognize a file that is damaged or of another format. Pure.

The layout is that of ggml's docs/gguf.md, versions 2 and 3: a magic, a version, counts, keys with values, tensors. Used
by `gguf_model.py`.
"""

import struct
from collections.abc import Mapping
from mmap import mmap
from typing import Any

import msgspec

from everlog.events import BadInput

MAGIC = b"GGUF"
VERSIONS = (2, 3)
"""Versions of the format that can be read."""

_PLAIN = {
    0: "<B", 1: "<b", 2: "<H", 3: "<h", 4: "<I", 5: "<i", 6: "<f", 7: "<?", 10: "<Q", 11: "<q", 12: "<d",
}  # fmt: skip
"""Types of values of a fixed size, with their format for `struct`."""
_STRING, _ARRAY = 8, 9

_BLOCKS = {
    0: (1, 4), 1: (1, 2), 2: (32, 18), 3: (32, 20), 6: (32, 22), 7: (32, 24), 8: (32, 34), 9: (32, 36),
    10: (256, 84), 11: (256, 110), 12: (256, 144), 13: (256, 176), 14: (256, 210), 15: (256, 292), 16: (256, 66),
    17: (256, 74), 18: (256, 98), 19: (256, 50), 20: (32, 18), 21: (256, 110), 22: (256, 82), 23: (256, 136),
    24: (1, 1), 25: (1, 2), 26: (1, 4), 27: (1, 8), 28: (1, 8), 29: (256, 56), 30: (1, 2), 34: (256, 54),
    35: (256, 66), 39: (32, 17),
}  # fmt: skip
"""Types of tensors: number of weights in a block, and bytes of the block."""

KEYS_MAX, TENSORS_MAX, TEXTS_MAX, DIMENSIONS_MAX = 100_000, 1_000_000, 4_000_000, 4
"""Largest counts of a valid header: keys, tensors, texts in all arrays, dimensions of one tensor (ggml has four). A
header with more is damaged. Without the last two a crafted header keeps the process busy for minutes.
"""
TEXT_BYTES_MAX = 64 * 1024 * 1024
"""Largest text of a valid header. A flipped bit in a length would otherwise copy gigabytes of weights into memory."""
LENGTH_BYTES = 8
"""Bytes of the length before each text."""


class GgufHeader(msgspec.Struct, frozen=True):
    """Description of a model in its file's header."""

    architecture: str
    name: str
    context_length: int
    """Number of tokens that the model was trained for."""
    chat_template: str
    """Template that turns a conversation into a prompt; empty if the file has none, as files of base models may."""

    @property
    def knows_tools(self) -> bool:
        """True if the template shows functions to the model."""
        return knows_tools(self.chat_template)


def knows_tools(template: str) -> bool:
    """Return True if a chat template shows functions to the model."""
    return "tools" in template


def header_of(content: "bytes | mmap", path: str) -> GgufHeader:
    """Return the header of a file. Raise BadInput if it is no GGUF file, has an unknown version, is truncated, or does
    not name the number of tokens that its model was trained for.
    """
    size = len(content)
    begin = bytes(content[:64])
    if begin[:4] != MAGIC:
        raise BadInput(f"{path} is no GGUF file: {_instead(begin)}. Give the path of a model in the format GGUF.")
    reader = _Reader(content, path)
    reader.at = 4
    version = reader.read_plain("<I")
    if version not in VERSIONS:
        raise BadInput(
            f"{path} is a GGUF file of version {version}, and versions {VERSIONS[0]} to {VERSIONS[-1]} can be read. "
            "Get the model in one of these, or convert it with llama.cpp."
        )
    tensors, keys = reader.read_plain("<Q"), reader.read_plain("<Q")
    if keys > KEYS_MAX or tensors > TENSORS_MAX:
        raise reader.header_error(f"it says that it has {tensors} tensors and {keys} keys")
    values = reader.values(keys)
    _raise_if_truncated(reader, tensors, values, size)
    architecture = str(values.get("general.architecture", ""))
    length = values.get(f"{architecture}.context_length")
    if not isinstance(length, int) or not 0 < length < 2**31:  # llama.cpp would end the whole process
        raise BadInput(
            f"{path} cannot be run as a model: {architecture or 'general'}.context_length is "
            f"{'missing' if length is None else repr(length)}, and should be how many tokens it was made for. "
            "Fetch the file again, or get the model from elsewhere."
        )
    return GgufHeader(
        architecture=architecture,
        name=str(values.get("general.name", "")),
        context_length=length,
        chat_template=str(values.get("tokenizer.chat_template", "")),
    )


def _instead(begin: bytes) -> str:
    if not begin:
        return "it is empty"
    if begin.lstrip()[:1] == b"<":
        return "it is a web page, perhaps what a download ended in"
    if begin.startswith(b"version https://git-lfs"):
        return "it only points to a model that Git LFS keeps elsewhere (`git lfs pull` fetches it)"
    return f"it begins with {begin[:8]!r}, not with {MAGIC!r}"


class _Reader:
    """Reader that advances through the file."""

    def __init__(self, content: "bytes | mmap", path: str) -> None:
        self._content, self._path = content, path
        self._texts = 0
        self.at = 0

    def header_error(self, what: str) -> BadInput:
        """Return the error for a header with an impossible value."""
        return BadInput(f"{self._path} is damaged near byte {self.at}: {what}. Fetch the file again.")

    def truncated_error(self, expected: int) -> BadInput:
        """Return the error for a file that ends too soon."""
        return BadInput(
            f"{self._path} is cut off: it has {len(self._content):,} bytes and should have at least {expected:,}. It "
            "was copied or downloaded in part; fetch it again."
        )

    def read_plain(self, form: str) -> Any:
        """Read a value of a fixed size."""
        size = struct.calcsize(form)
        if self.at + size > len(self._content):
            raise self.truncated_error(self.at + size)
        (value,) = struct.unpack_from(form, self._content, self.at)
        self.at += size
        return value

    def string(self) -> str:
        """Read a text, which is preceded by its length."""
        size = self.read_plain("<Q")
        self._pass(size)
        if size > TEXT_BYTES_MAX:
            raise self.header_error(f"a text of {size:,} bytes, above the limit of {TEXT_BYTES_MAX:,}")
        return bytes(self._content[self.at - size : self.at]).decode(errors="replace")

    def values(self, count: int) -> Mapping[str, Any]:
        """Read keys with their values. Arrays are skipped, and their value is None."""
        found: dict[str, Any] = {}
        for _ in range(count):
            key = self.string()
            found[key] = self._value(self.read_plain("<I"))
        return found

    def _value(self, kind: int) -> Any:
        if kind in _PLAIN:
            return self.read_plain(_PLAIN[kind])
        if kind == _STRING:
            return self.string()
        if kind != _ARRAY:
            raise self.header_error(f"there is no value of type {kind}")
        kind, count = self.read_plain("<I"), self.read_plain("<Q")
        if kind in _PLAIN:
            self._pass(count * struct.calcsize(_PLAIN[kind]))
        elif kind == _STRING:
            if self.at + count * LENGTH_BYTES > len(self._content):
                raise self.truncated_error(self.at + count * LENGTH_BYTES)
            self._texts += count
            if self._texts > TEXTS_MAX:
                raise self.header_error(f"its arrays have {self._texts:,} texts, above the limit of {TEXTS_MAX:,}")
            for _ in range(count):
                self._pass(self.read_plain("<Q"))
        else:
            raise self.header_error(f"an array of values of type {kind}")
        return None

    def _pass(self, size: int) -> None:
        if self.at + size > len(self._content):
            raise self.truncated_error(self.at + size)
        self.at += size

    def end_of_tensor(self) -> int:
        """Read the description of a tensor, and return its end in bytes after the header;
        0 if its type is unknown here.
        """
        self.string()
        weights, dimensions = 1, self.read_plain("<I")
        if dimensions > DIMENSIONS_MAX:
            raise self.header_error(f"a tensor of {dimensions:,} dimensions; there are at most {DIMENSIONS_MAX}")
        for _ in range(dimensions):
            weights *= self.read_plain("<Q")
        kind, offset = self.read_plain("<I"), self.read_plain("<Q")
        if kind not in _BLOCKS:
            return 0
        per_block, block_bytes = _BLOCKS[kind]
        return int(offset + weights // per_block * block_bytes)


def _raise_if_truncated(reader: _Reader, tensors: int, values: Mapping[str, Any], size: int) -> None:
    """Raise BadInput if the last tensor ends beyond the end of the file."""
    end = max((reader.end_of_tensor() for _ in range(tensors)), default=0)
    alignment = values.get("general.alignment", 32)
    if not isinstance(alignment, int) or not 0 < alignment <= 1 << 20:
        raise reader.header_error(f"its alignment is {alignment!r}")
    begin = -(-reader.at // alignment) * alignment
    if begin + end > size:
        raise reader.truncated_error(begin + end)
