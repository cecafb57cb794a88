"""Parse a `models.toml` into descriptions of endpoints and models. Pure; errors name the line and the field.

Used by `model_catalogue.py`. A file that holds a key, not just the name of a variable, is refused.
"""

import re
import tomllib
from collections.abc import Iterator, Mapping
from typing import Any, TypeVar
from urllib.parse import urlsplit

import msgspec

from everlog.actors.models.model_types import EndpointEntry, ModelEntry, plain_url
from everlog.events import BadInput

_Shape = TypeVar("_Shape", EndpointEntry, ModelEntry)

_TABLES: Mapping[str, type[EndpointEntry] | type[ModelEntry]] = {"endpoints": EndpointEntry, "models": ModelEntry}

KEY_NAME = re.compile(r"[A-Z_][A-Z0-9_]{0,63}")
"""Form of the name of an environment variable."""
SECRET = re.compile(
    r"(sk|pk|rk)-[A-Za-z0-9_-]{8,}|(gsk|hf|xai|nvapi|pplx|tgp|csk|r8|fw|or)[-_][A-Za-z0-9_-]{12,}|AIza[A-Za-z0-9_-]{20,}"
    r"|(?i:bearer) +\S{8,}|[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{10,}|[A-Fa-f0-9]{32,}"
)
"""Forms of real keys. A key in the file is refused, because files are copied, shown and committed."""


def parse_models(text: str, path: str) -> tuple[Mapping[str, EndpointEntry], Mapping[str, ModelEntry]]:
    """Return the endpoints and models of a file, by name.
    Raise BadInput, whose text repeats no value that could be a key.
    """
    try:
        tables = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise BadInput(f"{path} is no TOML: {error}. Nothing was read of it.") from error
    for name in tables:
        if name not in _TABLES:
            raise _fault(path, text, [name], "there are tables [endpoints.NAME] and [models.NAME] here, and no others")
    _check_no_secrets(tables, path, text)
    endpoints = {
        name: _read(EndpointEntry, "endpoints", name, value, path, text)
        for name, value in _table(tables, "endpoints", path, text)
    }
    models = {
        name: _read(ModelEntry, "models", name, value, path, text)
        for name, value in _table(tables, "models", path, text)
    }
    urls: dict[str, str] = {}
    for name, endpoint in endpoints.items():
        _check(name, endpoint, path, text)
        other = urls.setdefault(plain_url(endpoint.url), name)
        if other != name:
            raise _fault(path, text, ["endpoints", name, "url"], f"the endpoint {other!r} has this address already")
    first, *others = [name for name, endpoint in endpoints.items() if endpoint.reranker] or [""]
    if others:
        raise _fault(path, text, ["endpoints", others[0], "reranker"], f"the endpoint {first!r} reranks already")
    for name, entry in models.items():
        for field in ("window", "threads", "price_in", "price_out", "price_cached"):
            value = getattr(entry, field)
            if value is not None and not (value > 0 if field in ("window", "threads") else 0 <= value < float("inf")):
                raise _fault(path, text, ["models", name, field], "a number above 0 was expected (a price may be 0)")
    return endpoints, models


def _table(tables: Mapping[str, Any], kind: str, path: str, text: str) -> list[tuple[str, Any]]:
    table = tables.get(kind, {})
    if not isinstance(table, dict):
        raise _fault(path, text, [kind], f"tables [{kind}.NAME] were expected")
    return list(table.items())


def _read(shape: type[_Shape], kind: str, name: str, value: Any, path: str, text: str) -> _Shape:
    try:
        return msgspec.convert(value, shape)
    except msgspec.ValidationError as error:
        expected, _, where = str(error).partition(" - at `$")
        unknown = re.search(r"unknown field `([^`]*)`", expected)
        missing = re.search(r"missing required field `([^`]*)`", expected)
        fields: list[str] = [part for part in where.rstrip("`").split(".") if part]
        if unknown:
            fields.append(unknown[1])
            expected = f"there is no such field; there are {', '.join(shape.__struct_fields__)}"
        elif missing:
            expected = f"the field {missing[1]} is missing"
        raise _fault(path, text, [kind, name, *fields], expected[0].lower() + expected[1:]) from error


def _check(name: str, endpoint: EndpointEntry, path: str, text: str) -> None:
    try:
        parts = urlsplit(endpoint.url)
        usable = parts.scheme in ("http", "https") and bool(parts.hostname)
        secret = parts.username is not None or parts.password is not None or bool(parts.query)
    except ValueError:
        usable, secret = False, False
    if secret:
        raise _fault(
            path, text, ["endpoints", name, "url"], f"an address without a name, password or query {_ONLY_NAMES}"
        )
    if not usable:
        raise _fault(path, text, ["endpoints", name, "url"], "an address such as http://127.0.0.1:8000/v1 was expected")
    if endpoint.key and not KEY_NAME.fullmatch(endpoint.key):
        raise _fault(path, text, ["endpoints", name, "key"], f"the name of an environment variable {_ONLY_NAMES}")
    if endpoint.window is not None and endpoint.window <= 0:
        raise _fault(path, text, ["endpoints", name, "window"], "a number of tokens above 0 was expected")
    for field in ("silence_s", "call_s"):
        seconds = getattr(endpoint, field)
        if seconds is not None and not 0 < seconds < float("inf"):
            raise _fault(path, text, ["endpoints", name, field], "a number of seconds above 0 was expected")


_ONLY_NAMES = (
    "was expected, such as OPENAI_API_KEY: keys stay in the environment, and none may stand in this file. If it was a "
    "key, make a new one"
)


def _check_no_secrets(tables: Mapping[str, Any], path: str, text: str) -> None:
    for where, value in texts_in(tables, []):
        if SECRET.search(value):
            raise _fault(path, text, where, f"what stands there looks like a key; the name of a variable {_ONLY_NAMES}")


def texts_in(value: Any, where: list[str]) -> Iterator[tuple[list[str], str]]:
    """Yield the texts in a value of TOML, each with its place."""
    if isinstance(value, str):
        yield where, value
    elif isinstance(value, dict):
        for name, each in value.items():
            yield from texts_in(each, [*where, name])
    elif isinstance(value, list):
        for each in value:
            yield from texts_in(each, where)


def _fault(path: str, text: str, where: list[str], expected: str) -> BadInput:
    line = _line_of(text, where)
    shown = ".".join(part if re.fullmatch(r"[\w-]+", part) else f'"{part}"' for part in where)
    return BadInput(f"{path}{f', line {line}' if line else ''}: {shown}: {expected}. Nothing was read of it.")


def _line_of(text: str, where: list[str]) -> int:
    """Return the line of a field, or of its table if the field is not found; 0 if neither is found."""
    found, inside = 0, len(where) < 2
    for number, line in enumerate(text.splitlines(), 1):
        plain = line.strip()
        if plain.startswith("["):
            header = [part.strip("\"' ") for part in re.findall(r'"[^"]*"|\'[^\']*\'|[^.\[\]\s]+', plain.split("#")[0])]
            inside = header[:2] == where[:2] or (len(where) < 2 and header[:1] == where)
            found = number if inside and (not found or header == where[: len(header)]) else found
        elif inside and len(where) > 2 and re.match(rf"[\"']?{re.escape(where[2])}[\"']?\s*[.=]", plain):
            return number
    return found
