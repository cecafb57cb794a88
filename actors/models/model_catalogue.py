"""Read the descriptions of endpoints and models: the user's `models.toml`, findings of probes, and the shipped list.

Files are read again when they have changed. Nothing here calls an endpoint. Used by the gateway for every request, by
hosts, and by `everlog models`.
"""

import os
from collections.abc import Mapping
from functools import cache
from importlib import resources
from pathlib import Path

import google_crc32c
import msgspec

from everlog.actors.models.model_types import (
    OPENAI_URL,
    Catalogue,
    EndpointEntry,
    ModelAddress,
    ModelDefaults,
    ProbeFindings,
    is_gguf,
    is_rule_based,
)
from everlog.actors.models.models_toml import parse_models
from everlog.events import BadInput
from everlog.store import FileStamp, change_whole, read_whole, stamp_of

DESCRIPTIONS = "models.toml"
"""Name of the user's file of descriptions, in the store."""
FOUND = "endpoints-found.json"
"""Name of the file with the findings of probes, in the store."""

_read: dict[Path, tuple[FileStamp | None, FileStamp | None, Catalogue]] = {}
"""Newest catalogue of each store, with the stamps of the two files that it was read from."""


class _FoundFile(msgspec.Struct):
    version: int = 2
    """1: without a checksum."""
    found: list[ProbeFindings] = []
    crc32c: str = ""
    """Checksum of `found` as it is encoded."""


def _checksum(found: list[ProbeFindings]) -> str:
    return f"{google_crc32c.value(msgspec.json.encode(found)):08x}"


def catalogue_of(root: Path) -> Catalogue:
    """Return what is known in the store in `root`, which need not exist. Raise BadInput, StoreError."""
    path = descriptions_of(root)
    stamps = stamp_of(path), stamp_of(root / FOUND)
    before = _read.get(path)
    # Stamps show whether a file changed without reading it: this runs for every request.
    if before is None or before[:2] != stamps:
        endpoints, models = parse_models(_text(path), str(path))
        before = (*stamps, Catalogue(endpoints, models, tuple(_probes_in(read_whole(root / FOUND))), shipped()))
        _read[path] = before
    return before[2]


def descriptions_of(root: Path) -> Path:
    """Return the file of descriptions: EVERLOG_MODELS, else `models.toml` in the store.
    Raise BadInput if the first is missing.
    """
    named = os.environ.get("EVERLOG_MODELS", "")
    if not named:
        return root / DESCRIPTIONS
    path = Path(named).expanduser()
    if stamp_of(path) is None:
        raise BadInput(f"EVERLOG_MODELS names {named}, and there is no such file. Make it, or unset the variable.")
    return path


def _text(path: Path) -> str:
    try:
        return (read_whole(path) or b"").decode()
    except UnicodeDecodeError as error:
        raise BadInput(f"{path} is no UTF-8, from byte {error.start} on. Nothing was read of it.") from error


def _probes_in(content: bytes | None) -> list[ProbeFindings]:
    """Return the findings of probes. A file that is damaged counts as lost: the next probe writes it again."""
    try:
        read = msgspec.json.decode(content or b"{}", type=_FoundFile)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return []
    return read.found if read.version == 1 or read.crc32c == _checksum(read.found) else []


def save_probe(root: Path, found: ProbeFindings) -> None:
    """Store the findings of a probe, in place of earlier ones for the same model and address. Raise StoreError."""

    def kept(content: bytes | None) -> bytes:
        others = [each for each in _probes_in(content) if (each.url, each.model) != (found.url, found.model)]
        all_ = [*others, found]
        return msgspec.json.format(msgspec.json.encode(_FoundFile(found=all_, crc32c=_checksum(all_))))

    change_whole(root / FOUND, kept)


@cache
def shipped() -> Mapping[str, EndpointEntry]:
    """Return the endpoints that everlog ships with, by name."""
    text = (resources.files(__package__ or "everlog.actors.models") / "endpoints.toml").read_text(encoding="utf-8")
    return parse_models(text, "endpoints.toml")[0]


def place_at(root: Path, name: str, base_url: str) -> ModelAddress:
    """Return the address at which agents of the store in `root` call a model."""
    if is_rule_based(name) or is_gguf(name):
        return ModelAddress(name, "")
    return catalogue_of(root).place(name, base_url)


def defaults_at(root: Path, name: str, base_url: str) -> ModelDefaults:
    """Return the settings for a model of an agent in that store, where nothing else is configured."""
    if is_rule_based(name):
        return ModelDefaults(calling="native", stream=False)
    if is_gguf(name):
        from everlog.actors.models.gguf_model import defaults_of

        return defaults_of(name, catalogue_of(root))
    return catalogue_of(root).known(name, request_url(place_at(root, name, base_url).url))


def request_url(url: str) -> str:
    """Return the address of requests from this process: `url`, else OPENAI_BASE_URL, else OpenAI's."""
    return url or os.environ.get("OPENAI_BASE_URL") or OPENAI_URL
