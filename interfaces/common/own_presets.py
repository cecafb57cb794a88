"""Personas and humans that the user keeps in the store, beside the shipped ones: one text file each.

Used by `bootstrap` for new agents, and by `everlog preset`. An agent gets a copy of the text in its log: changing or
removing a file changes no agent.
"""

import re
from pathlib import Path
from typing import Literal

from everlog.actors.prompt import presets
from everlog.events import BadInput
from everlog.store import create_whole, names_beside, read_whole, remove_whole

Kind = Literal["persona", "human"]
KINDS: tuple[Kind, ...] = ("persona", "human")
FOLDERS = {"persona": "personas", "human": "humans"}
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}")
_ENDING = ".txt"


def names(root: Path, kind: Kind) -> list[str]:
    """Return the names of the user's presets of a kind, sorted."""
    beside = names_beside(root / "presets" / FOLDERS[kind])
    found = (name.removesuffix(_ENDING) for name in beside if name.endswith(_ENDING))
    return sorted(name for name in found if _NAME.fullmatch(name))


def text(root: Path, kind: Kind, name: str) -> str:
    """Return the text of a preset, of the user or shipped. Raise BadInput if there is none."""
    if name in names(root, kind):
        return (read_whole(_path(root, kind, name)) or b"").decode().rstrip("\r\n")
    if name in presets.names(kind):
        return presets.persona(name, presets.AGENT) if kind == "persona" else presets.human(name)
    known = ", ".join(sorted({*names(root, kind), *presets.names(kind)}))
    raise BadInput(f"There is no {kind} preset {name!r}; there are {known}.")


def add(root: Path, kind: Kind, name: str, value: str) -> None:
    """Write a preset. Raise BadInput for a name that is taken or invalid, and for a text that is empty."""
    if not _NAME.fullmatch(name):
        raise BadInput(f"A preset's name is up to 64 letters, digits, - and _, not {name[:80]!r}. Nothing was written.")
    if name in (*presets.names(kind), *names(root, kind)):
        raise BadInput(f"There is a {kind} preset {name!r} already. Remove it first, or take another name.")
    if not value.strip():
        raise BadInput("The text of a preset is empty. Nothing was written.")
    if not create_whole(_path(root, kind, name), f"{value}\n".encode()):
        raise BadInput(f"There is a {kind} preset {name!r} already. Remove it first, or take another name.")


def remove(root: Path, kind: Kind, name: str) -> None:
    """Delete a preset of the user. Raise BadInput for a shipped one, and for one that does not exist."""
    if name not in names(root, kind):
        shipped = name in presets.names(kind)
        why = "is shipped with everlog, and stays" if shipped else "does not exist"
        raise BadInput(f"The {kind} preset {name!r} {why}. Nothing was removed.")
    remove_whole(_path(root, kind, name))


def _path(root: Path, kind: Kind, name: str) -> Path:
    return root / "presets" / FOLDERS[kind] / f"{name}{_ENDING}"
