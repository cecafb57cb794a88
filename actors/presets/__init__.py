"""The texts that an agent may begin with, by name: system prompts, personas and humans, as package data. Nothing else.

A preset is a text file in the folder of its kind. It is read as it stands, without the line break at its end. That of a
system prompt is what `--preset` names; it may bring functions.
"""

from collections.abc import Sequence
from functools import cache
from importlib import resources
from importlib.resources.abc import Traversable
from typing import Literal

from events import BadInput

Kind = Literal["system", "persona", "human"]

_FOLDERS: dict[str, str] = {"system": "system", "persona": "personas", "human": "humans"}
_ENDING = ".txt"
_EXTRAS = {"extras": ("message_chatgpt", "read_from_text_file", "append_to_text_file", "http_request")}


def system(name: str) -> str:
    """The system prompt of that name."""
    return _text("system", name)


def persona(name: str) -> str:
    """What the block `persona` begins with."""
    return _text("persona", name)


def human(name: str) -> str:
    """What the block `human` begins with."""
    return _text("human", name)


def names(kind: Kind) -> list[str]:
    """The presets of a kind, in order. Raises BadInput where there is no such kind."""
    files = (entry.name for entry in _folder(kind).iterdir() if entry.name.endswith(_ENDING))
    return sorted(file.removesuffix(_ENDING) for file in files)


def extras(name: str) -> Sequence[str]:
    """Names of the functions of `actors.extras` that an agent of the preset has. Raises BadInput for an unknown one."""
    system(name)
    return _EXTRAS.get(name, ())


@cache
def _text(kind: Kind, name: str) -> str:
    known = names(kind)
    if name not in known:
        raise BadInput(f"There is no {kind} preset {name!r}; there are {', '.join(known)}.")
    return (_folder(kind) / f"{name}{_ENDING}").read_text(encoding="utf-8").strip()


def _folder(kind: str) -> Traversable:
    if kind not in _FOLDERS:
        raise BadInput(f"There are no presets of the kind {kind!r}; the kinds are {', '.join(_FOLDERS)}.")
    return resources.files(__name__) / _FOLDERS[kind]
