"""What the header of a GGUF file says: the smallest reader that tells a whole file from one that is none. Pure.

The layout is that of ggml's docs/gguf.md, versions 2 and 3: a magic, a version, counts, keys with values, tensors.
"""

import struct
from collections.abc import Mapping
from mmap import mmap
from typing import Any

import msgspec

from everlog.events import BadInput

MAGIC = b"GGUF"
VERSIONS = (2, 3)

_PLAIN = {
    0: "<B", 1: "<b", 2: "<H", 3: "<h", 4: "<I", 5: "<i", 6: "<f", 7: "<?", 10: "<Q", 11: "<q", 12: "<d",
}  # fmt: skip
"""Types of values of a fixed size."""
_STRING, _ARRAY = 8, 9

_BLOCKS = {
    0: (1, 4), 1: (1, 2), 2: (32, 18), 3: (32, 20), 6: (32, 22), 7: (32, 24), 8: (32, 34), 9: (32, 36),
    10: (256, 84), 11: (256, 110), 12: (256, 144), 13: (256, 176), 14: (256, 210), 15: (256, 292), 16: (256, 66),
    17: (256, 74), 18: (256, 98), 19: (256, 50), 20: (32, 18), 21: (256, 110), 22: (256, 82), 23: (256, 136),
    24: (1, 1), 25: (1, 2), 26: (1, 4), 27: (1, 8), 28: (1, 8), 29: (256, 56), 30: (1, 2), 34: (256, 54),
    35: (256, 66), 39: (32, 17),
}  # fmt: skip
"""Types of tensors: how many weights stand in a block, and how many bytes it has."""

KEYS_MAX, TENSORS_MAX = 100_000, 1_000_000


class GgufHeader(msgspec.Struct, frozen=True):
    """What a file says of itself."""

    architecture: str
    name: str
    context_length: int
    """Tokens that the model was made for."""
    chat_template: str
    """How a conversation is put to the model; empty: it does not say, as a base model may."""

    @property
    def knows_tools(self) -> bool:
        """Whether its template shows functions to the model."""
        return knows_tools(self.chat_template)


def knows_tools(template: str) -> bool:
    """Whether a chat template shows functions to the model."""
    return "tools" in template


def header_of(content: "bytes | mmap", path: str) -> GgufHeader:
    """The header of a file. Raises BadInput for what is no GGUF file, is of an unknown version, ends too soon, or does
    not say how many tokens its model was made for.
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
    if not isinstance(length, int) or not 0 < length < 2**31:  # llama.cpp would end the process
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
    """Reads on from a place in the file."""

    def __init__(self, content: "bytes | mmap", path: str) -> None:
        self._content, self._path = content, path
        self.at = 0

    def header_error(self, what: str) -> BadInput:
        """The error for a header that cannot be."""
        return BadInput(f"{self._path} is damaged near byte {self.at}: {what}. Fetch the file again.")

    def truncated_error(self, expected: int) -> BadInput:
        """The error for a file that ends too soon."""
        return BadInput(
            f"{self._path} is cut off: it has {len(self._content):,} bytes and should have at least {expected:,}. It "
            "was copied or downloaded in part; fetch it again."
        )

    def read_plain(self, form: str) -> Any:
        """A value of a fixed size."""
        size = struct.calcsize(form)
        if self.at + size > len(self._content):
            raise self.truncated_error(self.at + size)
        (value,) = struct.unpack_from(form, self._content, self.at)
        self.at += size
        return value

    def string(self) -> str:
        """A text with its length before it."""
        size = self.read_plain("<Q")
        self._pass(size)
        return bytes(self._content[self.at - size : self.at]).decode(errors="replace")

    def values(self, count: int) -> Mapping[str, Any]:
        """Keys with their values; of arrays only that they are there."""
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
        """Where a tensor ends, in bytes after the header; 0 for one of a type that is not known here."""
        self.string()
        weights = 1
        for _ in range(self.read_plain("<I")):
            weights *= self.read_plain("<Q")
        kind, offset = self.read_plain("<I"), self.read_plain("<Q")
        if kind not in _BLOCKS:
            return 0
        per_block, block_bytes = _BLOCKS[kind]
        return int(offset + weights // per_block * block_bytes)


def _raise_if_truncated(reader: _Reader, tensors: int, values: Mapping[str, Any], size: int) -> None:
    """Raises BadInput where the last tensor ends beyond the file."""
    end = max((reader.end_of_tensor() for _ in range(tensors)), default=0)
    alignment = values.get("general.alignment", 32)
    if not isinstance(alignment, int) or not 0 < alignment <= 1 << 20:
        raise reader.header_error(f"its alignment is {alignment!r}")
    begin = -(-reader.at // alignment) * alignment
    if begin + end > size:
        raise reader.truncated_error(begin + end)
