"""Texts that an agent may begin with, by name: system prompts, personas and humans, as package data. Nothing else.

A preset is a text file in the folder of its kind, read without the line break at its end. A system prompt, the kind
that `--preset` names, is a list of sections, each a file; presets may share sections. A system prompt may bring
functions. A persona may say `{{ agent }}`: there the new agent's own name stands, so that each agent knows itself.
"""

from collections.abc import Mapping, Sequence
from functools import cache
from importlib import resources
from importlib.resources.abc import Traversable
from typing import Literal

from everlog.events import BadInput, Section
from everlog.store import bare_name

PresetKind = Literal["system", "persona", "human"]

_FOLDERS: dict[str, str] = {"system": "system", "persona": "personas", "human": "humans"}
_ENDING = ".txt"
_SYSTEM: Mapping[str, Sequence[str]] = {
    "chat": ("chat/base", "chat/control_flow", "chat/speaking", "chat/memory", "chat/tools", "chat/closing"),
    "docs": (
        "docs/base", "docs/control_flow", "docs/speaking", "docs/documents", "docs/memory", "chat/tools",
        "chat/closing",
    ),
    "extras": (
        "chat/base", "chat/control_flow", "chat/speaking", "chat/memory", "chat/tools", "extras/outside",
        "chat/closing",
    ),
    "small": ("small/base",),
}  # fmt: skip
"""Sections of each system prompt, in order, by folder and name."""
BETWEEN = "\n\n"
"""Separator of two sections of a system prompt."""
AGENT = "{{ agent }}"
"""Place of the agent's name in a persona."""
SMALL = "small"
"""System prompt for a small context window; its agents have fewer functions, described in fewer words."""
_EXTRAS = {"extras": ("message_chatgpt", "read_from_text_file", "append_to_text_file", "http_request")}


def system(name: str) -> str:
    """Return the system prompt of that name."""
    return _text("system", name)


def sections(name: str) -> list[Section]:
    """Return the sections of the system prompt of that name. Raise BadInput for an unknown preset."""
    system(name)
    return [Section(path.rpartition("/")[2], _read("system", path)) for path in _SYSTEM[name]]


def persona(name: str, agent_id: str) -> str:
    """Return the text with which the block `persona` of an agent begins: of a template, with the agent's own name."""
    return _text("persona", name).replace(AGENT, called(agent_id))


def called(agent_id: str) -> str:
    """Return the name by which an agent calls itself: `sam` is Sam, and any other spelling stays as it is."""
    name = bare_name(agent_id)
    return name.capitalize() if name.isalpha() and name.islower() else name


def human(name: str) -> str:
    """Return the text with which the block `human` begins."""
    return _text("human", name)


def names(kind: PresetKind) -> list[str]:
    """Return the names of the presets of a kind, sorted. Raise BadInput for an unknown kind."""
    if kind == "system":
        return sorted(_SYSTEM)
    files = (entry.name for entry in _folder(kind).iterdir() if entry.name.endswith(_ENDING))
    return sorted(file.removesuffix(_ENDING) for file in files)


def extras(name: str) -> Sequence[str]:
    """Return the names of the extra functions of a preset. Raise BadInput for an unknown preset."""
    system(name)
    return _EXTRAS.get(name, ())


@cache
def _text(kind: PresetKind, name: str) -> str:
    known = names(kind)
    if name not in known:
        raise BadInput(f"There is no {kind} preset {name!r}; there are {', '.join(known)}.")
    return BETWEEN.join([_read(kind, path) for path in _SYSTEM[name]]) if kind == "system" else _read(kind, name)


def _read(kind: PresetKind, path: str) -> str:
    return (_folder(kind) / f"{path}{_ENDING}").read_text(encoding="utf-8").strip()


def _folder(kind: str) -> Traversable:
    if kind not in _FOLDERS:
        raise BadInput(f"There are no presets of the kind {kind!r}; the kinds are {', '.join(_FOLDERS)}.")
    return resources.files(__name__) / _FOLDERS[kind]
