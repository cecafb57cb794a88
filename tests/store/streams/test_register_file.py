"""Files of the register: each changed bit is found, and files of everlog 0.1 are read as strictly as they can be."""

from collections.abc import Sequence
from pathlib import Path

import msgspec
import pytest

from everlog.events import CorruptLog
from everlog.store import partition_of
from everlog.store.base.names import hash_of
from everlog.store.streams.register_file import Assignment, decode_assignments, encode_assignments
from tests.support.seeds import pick

PATH = Path("/sim/agents/e9/e9")
SAM = Assignment("sam", partition_of("sam"))
KID = Assignment("kid é", partition_of("kid é"), 2, "sam", 420)
FORMS: dict[str, Sequence[Assignment]] = {"one": [SAM], "a fork": [KID], "together": [SAM, KID]}


def old(found: Sequence[Assignment]) -> bytes:
    """Return the bytes that everlog 0.1 wrote."""
    return msgspec.json.encode(found[0] if len(found) == 1 else found)


@pytest.mark.parametrize("form", FORMS)
def test_a_file_comes_back_as_it_was_written(form: str) -> None:
    """The assignments come back by the hash of the name, from a file of today and from one of everlog 0.1."""
    found = FORMS[form]
    expected = {hash_of(assignment.agent_id): assignment for assignment in found}
    assert decode_assignments(encode_assignments(found), PATH) == (expected, True)
    assert decode_assignments(old(found), PATH) == (expected, False)


@pytest.mark.parametrize("form", FORMS)
def test_p4_every_flipped_bit_of_a_register_file_is_found(form: str) -> None:
    """With any one bit flipped the file is CorruptLog, and never a file of everlog 0.1."""
    content = encode_assignments(FORMS[form])
    for bit in range(8 * len(content)):
        changed = bytearray(content)
        changed[bit // 8] ^= 1 << bit % 8
        with pytest.raises(CorruptLog, match=r"/sim/agents/e9/e9, a file of the register, is damaged.*repair-register"):
            decode_assignments(bytes(changed), PATH)


@pytest.mark.parametrize("form", FORMS)
def test_p4_a_register_file_of_another_length_is_found(form: str) -> None:
    """A file that was cut short, or that has more bytes, is CorruptLog; a file of everlog 0.1 too."""
    for content in (encode_assignments(FORMS[form]), old(FORMS[form])):
        for end in range(len(content)):
            with pytest.raises(CorruptLog):
                decode_assignments(content[:end], PATH)
        for more in (b"\n", b" ", b"\0", b"x", content):
            with pytest.raises(CorruptLog):
                decode_assignments(content + more, PATH)


def test_a_flipped_bit_in_the_keys_of_an_old_file_is_found() -> None:
    """A file of everlog 0.1 with a flipped bit in a key is damaged: no key may be unknown, and none may be missing."""
    content = old([KID])
    for key in (b'"agent_id"', b'"partition"', b'"epoch"', b'"parent"', b'"parent_seq"'):
        start = content.index(key)
        for bit in pick(range(8 * start, 8 * (start + len(key))), 30, label="bits"):
            changed = bytearray(content)
            changed[bit // 8] ^= 1 << bit % 8
            with pytest.raises(CorruptLog):
                decode_assignments(bytes(changed), PATH)


@pytest.mark.parametrize(
    "content",
    [b"", b"[]", b"{}", b"null", b'{"agent_id":"sam","partition":"p"}', encode_assignments([]),
     old([SAM]).replace(b'","', b'", "'), b'{"crc32c":"00000000","agents":[]}'],
)  # fmt: skip
def test_a_file_with_fields_missing_or_spaces_is_damaged(content: bytes) -> None:
    """Only the bytes that everlog writes are a file of the register: all fields, and no space between them."""
    with pytest.raises(CorruptLog):
        decode_assignments(content, PATH)
