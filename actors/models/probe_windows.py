"""Ask each kind of server for the context window of a model, and read its answer. Pure.

Used by `probe.py`.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any


def list_in(value: Any, name: str) -> list[Any]:
    """Return the list of that name in an object; empty if there is none."""
    found = value.get(name) if isinstance(value, dict) else None
    return found if isinstance(found, list) else []


def tokens_in(value: Any) -> int | None:
    """Return a value as a number of tokens; None if it is none."""
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 < value < 2**40 else None


def _of_llama_cpp(value: Mapping[str, Any], _: str) -> int | None:
    settings = value.get("default_generation_settings")
    return tokens_in(settings.get("n_ctx")) if isinstance(settings, dict) else None


def _of_ollama(value: Mapping[str, Any], model: str) -> int | None:
    for row in list_in(value, "models"):
        if isinstance(row, dict) and model in (row.get("name"), row.get("model"), str(row.get("name")).split(":")[0]):
            return tokens_in(row.get("context_length"))
    return None


def _of_ollama_file(value: Mapping[str, Any], _: str) -> int | None:
    for line in str(value.get("parameters", "")).splitlines():
        name, _, count = line.partition(" ")
        if name == "num_ctx" and count.strip().isdecimal():
            return tokens_in(int(count))
    return None


def _of_lm_studio(value: Mapping[str, Any], model: str) -> int | None:
    for row in list_in(value, "data"):
        if isinstance(row, dict) and row.get("id") == model:
            return tokens_in(row.get("loaded_context_length"))
    return None


def _of_kobold(value: Mapping[str, Any], _: str) -> int | None:
    return tokens_in(value.get("value"))


WINDOWS: Sequence[tuple[str, str, str, Callable[[Mapping[str, Any], str], int | None]]] = (
    ("llama.cpp", "GET", "/props", _of_llama_cpp),
    ("Ollama", "GET", "/api/ps", _of_ollama),
    ("Ollama", "POST", "/api/show", _of_ollama_file),
    ("LM Studio", "GET", "/api/v0/models", _of_lm_studio),
    ("KoboldCpp", "GET", "/api/extra/true_max_context_length", _of_kobold),
)
"""Requests for the context window: kind of server, method, path, and reader of the answer."""
