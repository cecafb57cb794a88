"""Recognize the format of a file with past conversations, and return the conversations in it.

Used by `everlog import`. A file is understood completely or not at all: every fault is a BadInput that names its place,
and nothing is written before the whole file was checked. What an agent cannot have (images, results of functions,
prompts of another system) is left out and counted.
"""

import math
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, Literal

import msgspec

from everlog.actors.agent.agent_setup import InitialBlock, Settings
from everlog.actors.agent.conversation_import import YEAR_MAX, YEAR_MIN, ImportedMessage
from everlog.events import BadInput, MessageSent, UserMessage
from everlog.events.times import moment, since_epoch

FormatName = Literal["auto", "jsonl", "chatgpt", "letta", "memgpt"]

JsonMap = Mapping[str, Any]

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"


class PastConversation(msgspec.Struct, frozen=True, kw_only=True):
    """One conversation of a file."""

    id: str
    """Its id in the file; empty if it has none."""
    title: str
    messages: Sequence[ImportedMessage]
    blocks: Sequence[InitialBlock] = ()
    """Memory blocks that came with it."""
    settings: Settings = Settings()
    """Settings of the agent that had it, of a file that has whole agents."""
    left_out: Mapping[str, int] = {}
    """Numbers of what was left out, by kind."""


class MessageCollector:
    """Messages of one conversation while it is read, and what was left out of it."""

    def __init__(self) -> None:
        self.messages: list[ImportedMessage] = []
        self.left_out: Counter[str] = Counter()

    def add(self, role: str, text: str, at: int, *, ref: str = "", name: str = "") -> None:
        """Add a message of `user` or `assistant`; a blank one is counted as left out. Raises ValueError."""
        for part in (text, ref, name):
            part.encode()  # fails for a lone surrogate, which the log cannot store
        if not text.strip():
            self.left_out["empty messages"] += 1
        elif role == "user":
            self.messages.append(ImportedMessage(UserMessage(text=text, name=name, ref=ref, imported=True), moment(at)))
        else:
            self.messages.append(ImportedMessage(MessageSent(text=text, name=name, ref=ref, imported=True), moment(at)))


_FORMAT_OF: Mapping[str, FormatName] = {
    "mapping": "chatgpt",
    "agents": "letta",
    "core_memory": "letta",
    "messages_total": "memgpt",
}
"""Format of a file by the keys of its object."""
_LIST_OF_MESSAGES = re.compile(rb'\[\s*\{\s*"role"\s*:')


def recognized(data: bytes) -> FormatName:
    """Return the format of a file by its content."""
    text = data.removeprefix(_BYTE_ORDER_MARK).lstrip()
    if text.startswith(b"["):
        return "memgpt" if _LIST_OF_MESSAGES.match(text) else "chatgpt"
    if text.startswith(b'"'):  # Letta's client returned an agent file as a text, and programs wrote that as JSON
        return "letta"
    first = _object_or_none(text.partition(b"\n")[0])
    if first is not None and not _FORMAT_OF.keys() & first.keys():
        return "jsonl"
    whole = (first if first is not None else _object_or_none(text)) or {}
    return next((name for key, name in _FORMAT_OF.items() if key in whole), "jsonl")


def parsed(data: bytes, place: str) -> Any:
    """Decode JSON, also JSON in a text of JSON. Raises BadInput that names the place."""
    try:
        found = msgspec.json.decode(data.removeprefix(_BYTE_ORDER_MARK))
        return msgspec.json.decode(found) if isinstance(found, str) else found
    except UnicodeDecodeError as error:
        raise bad(place, f"it is not UTF-8 (byte {error.start + 1})") from error
    except RecursionError as error:
        raise bad(place, "it is nested too deeply") from error
    except msgspec.DecodeError as error:
        raise bad(place, f"it is not JSON ({error})") from error


def _object_or_none(data: bytes) -> JsonMap | None:
    try:
        found = msgspec.json.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


def bad(place: str, fault: str) -> BadInput:
    """Return the error for a fault of the file."""
    return BadInput(
        f"{place}: {fault}. Nothing of the file was imported. docs/how_to/import_a_conversation.md shows the accepted "
        "formats; --format names one."
    )


def field(of: JsonMap, name: str, kind: type | tuple[type, ...], place: str, *, default: Any = None) -> Any:
    """Return a field of an object, or the default if it is missing or null. Raises BadInput for another type."""
    value = of.get(name)
    if value is None:
        return default
    if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
        raise bad(place, f"its {name} is of the type {type(value).__name__}")
    return value


def objects(of: JsonMap, name: str, place: str) -> list[JsonMap]:
    """Return the objects of a list. Raises BadInput if the field is no list of objects; a missing one is empty."""
    found = field(of, name, list, place, default=[])
    for number, one in enumerate(found):
        if not isinstance(one, dict):
            raise bad(f"{place}, {name}[{number}]", f"it is no object but {type(one).__name__}")
    return list(found)


def epoch_us(seconds: float, place: str) -> int:
    """Return a time in seconds since 1970 as microseconds. Raises BadInput for a time that no zone can show."""
    try:
        when = _EPOCH + timedelta(seconds=seconds) if math.isfinite(seconds) else None
    except OverflowError:
        when = None
    if when is None or not YEAR_MIN <= when.year <= YEAR_MAX:
        raise bad(place, f"its time {str(seconds)[:30]} is not in the years {YEAR_MIN} to {YEAR_MAX}")
    return since_epoch(when)


def iso_us(text: str, place: str) -> int:
    """Return an ISO 8601 time as microseconds; without a zone it is UTC. Raises BadInput."""
    try:
        when = datetime.fromisoformat(text)
    except ValueError as error:
        raise bad(place, f"its time {text[:40]!r} is not ISO 8601") from error
    if not YEAR_MIN <= when.year <= YEAR_MAX:
        raise bad(place, f"its time {text[:40]} is not in the years {YEAR_MIN} to {YEAR_MAX}")
    return since_epoch(when)
