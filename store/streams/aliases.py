"""Keep other names of agents, which `everlog rename` gives: each stands for the name that is in the agent's log.

    <root>/names/<h>    h = sha256 of the other name: {"crc32c":"xxxxxxxx","alias":{"name":...,"agent_id":...,...}}

The name in the log is in the digests of all records, so it cannot change, and it stays usable. A name means the agent
that was registered under it, if there is one; only then is it looked for here. So an alias never hides an agent, also
if two processes take the same name at once. A file is complete before it has its name, and only one process can create
that name. It never changes; a file is valid only if encoding its content gives the same bytes.

Used by `FileStore`, whose register refuses new agents under these names, by `AgentSystem`, the command line, and
`everlog log check`.
"""

from collections.abc import Callable, Collection, Iterable, Iterator
from pathlib import Path

import msgspec

from everlog.events import BadInput, CorruptLog, UnknownAgent
from everlog.store.base.block_streams import check_not_reserved
from everlog.store.base.disk import Disk, publish, remove_if_there, storage
from everlog.store.base.names import check_name_form, hash_of, name_of
from everlog.store.partition.partition import token
from everlog.store.streams.register_file import signed_json

_HASH_CHARS = 64


class Alias(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Another name of an agent."""

    name: str
    agent_id: str
    """Name that is in the agent's log."""
    given_at: int
    """Time at which it was given, microseconds UTC: the newest name is the one that is shown."""


class _Signed(msgspec.Struct, forbid_unknown_fields=True):
    crc32c: str
    alias: Alias


def _encoded(alias: Alias) -> bytes:
    return signed_json("alias", msgspec.json.encode(alias))


class Aliases:
    """Other names of the agents of a store."""

    def __init__(self, disk: Disk, root: Path, is_registered: Callable[[str], bool]) -> None:
        """Store the collaborators. `is_registered` says if an agent has a name (NFC) as that of its log."""
        self._disk = disk
        self._folder = root / "names"
        self._is_registered = is_registered

    def resolve(self, text: str) -> str:
        """Return the name that is in the log of the agent called `text`; `text` itself, in NFC form, if it is no other
        name. Raises BadInput for an impossible name, CorruptLog for a damaged file.
        """
        name = name_of(text)
        alias = self._find(name)
        return name if alias is None or self._is_registered(name) else alias.agent_id

    def give(self, agent: str, new_name: str, at: int) -> Alias:
        """Give an agent another name, durably, and return it. `at`: the time now, microseconds UTC.

        `new_name` may be a name that the agent had before: it is shown again. Raises UnknownAgent; BadInput for an
        unusable name and for one that is taken.
        """
        agent_id, name = self.resolve(agent), name_of(new_name)
        check_not_reserved(agent_id)
        check_not_reserved(name)
        if not self._is_registered(agent_id):
            raise UnknownAgent(f"there is no agent {agent_id!r} in this store. `everlog agents` lists them.")
        check_name_form(name)
        alias = Alias(name, agent_id, at)
        before = self._find(name)
        if before is not None and before.agent_id == agent_id:
            self._remove(name)
        taken = self._is_registered(name) and name != agent_id
        if taken or not self._publish(alias):
            raise BadInput(
                f"{name!r} cannot be another name of {agent_id!r}: {self._owner(name)}. Nothing was changed; choose "
                "another name."
            )
        return alias

    def _owner(self, name: str) -> str:
        """Return who has a name that is taken."""
        found = None if self._is_registered(name) else self._find(name)
        return "there is an agent of that name" if found is None else f"it is a name of {found.agent_id!r} already"

    def _publish(self, alias: Alias) -> bool:
        with storage("keep a name in", self._folder):
            self._disk.make_dirs(self._folder)
            return publish(self._disk, self.path_of(alias.name), _encoded(alias), token())

    def check_free(self, names: Iterable[str]) -> None:
        """Raise BadInput if one of the names, which no agent has, is another name of an agent."""
        kept = self._hashes()
        for name in names if kept else ():
            alias = self._find(name) if hash_of(name) in kept else None
            if alias is not None and alias.agent_id != name:
                raise BadInput(
                    f"{name!r} is another name of {alias.agent_id!r} (`everlog rename`), so no agent can be made under "
                    "it. Nothing was changed; choose another name."
                )

    def shown(self) -> dict[str, str]:
        """Return the newest name of each agent that has another one, by the name in its log. A damaged file is left
        out: `faults` names it.
        """
        newest = sorted(self._sound(), key=lambda alias: (alias.given_at, alias.name))
        return {alias.agent_id: alias.name for alias in newest}

    def of(self, agent_id: str) -> list[str]:
        """Return all names that were given to an agent, oldest first. A damaged file is left out."""
        mine = [alias for alias in self._sound() if alias.agent_id == agent_id]
        return [alias.name for alias in sorted(mine, key=lambda alias: (alias.given_at, alias.name))]

    def remove_of(self, agent_id: str) -> list[str]:
        """Forget the names that were given to an agent, durably, and return them. The agent keeps that of its log."""
        names = self.of(agent_id)
        for name in names:
            self._remove(name)
        return names

    def faults(self) -> Iterator[str]:
        """Yield an error for each damaged file, for each name of an unknown agent, and for each that an agent has."""
        for path in self._paths():
            try:
                alias = self._read(path)
            except CorruptLog as error:
                yield str(error)
                continue
            if alias is None:
                continue
            if not self._is_registered(alias.agent_id):
                yield f"{path} gives a name to {alias.agent_id!r}, which the register does not have. Remove the file."
            elif alias.name != alias.agent_id and self._is_registered(alias.name):
                yield (
                    f"{path}: {alias.name!r} is a name of {alias.agent_id!r} and also an agent, which it means. Rename "
                    f"{alias.agent_id!r} again, and remove the file."
                )

    def _sound(self) -> Iterator[Alias]:
        for path in self._paths():
            try:
                alias = self._read(path)
            except CorruptLog:
                continue
            if alias is not None:
                yield alias

    def _find(self, name: str) -> Alias | None:
        return self._read(self.path_of(name))

    def _read(self, path: Path) -> Alias | None:
        """Return the content of a file; None if there is none. Raises CorruptLog, StoreError."""
        with storage("read", path):
            if not self._disk.exists(path):
                return None
            try:
                content = self._disk.read(path)
            except FileNotFoundError:  # another process has just removed it
                return None
        try:
            alias = msgspec.json.decode(content, type=_Signed).alias
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise _damaged(path, str(error)) from error
        if _encoded(alias) != content or hash_of(alias.name) != path.name:
            raise _damaged(path, "wrong checksum")
        return alias

    def _paths(self) -> list[Path]:
        return [self._folder / name for name in sorted(self._hashes())]

    def _hashes(self) -> Collection[str]:
        with storage("list the names in", self._folder):
            names = self._disk.names(self._folder) if self._disk.exists(self._folder) else []
        return {name for name in names if len(name) == _HASH_CHARS}

    def path_of(self, name: str) -> Path:
        """Return the path of the file of a name (NFC), which exists if the name was given."""
        return self._folder / hash_of(name)

    def _remove(self, name: str) -> None:
        path = self.path_of(name)
        with storage("remove a name from", self._folder):
            remove_if_there(self._disk, path)
            self._disk.sync_dir(self._folder)


def _damaged(path: Path, why: str) -> CorruptLog:
    return CorruptLog(
        f"{path}, another name of an agent, is damaged: {why}. Nothing was changed. Restore the file from a backup, or "
        "remove it: the name in the agent's log, which `everlog agents` shows, is always usable."
    )
