"""Kill a host of Ray exactly at a step of a message between agents: the test arms its process, which then kills itself.

`arm` runs in the process of the host. It counts the commits with messages of each agent there, and sends SIGKILL to
its own process at a point around or inside one of them. The next process of the host is not armed.
"""

import os
import signal
import threading
from collections import Counter
from collections.abc import Sequence
from typing import Any

from everlog.actors.mail import mail_functions
from everlog.events import Draft
from everlog.store import Append, FileLog
from everlog.store.base.disk import RealFile
from tests.support.agents.killed_town import SIGNS

_append_group, _write, _sync = FileLog.append_group, RealFile.write, RealFile.sync


class ArmedHost:
    """Points of the commits that this process writes, and the one at which it dies."""

    def __init__(self) -> None:
        self.stop = ""
        self.seen: Counter[str] = Counter()
        """Commits since `arm`, by agent and kind."""
        self._thread = threading.local()
        """Kinds of the commits that a thread is writing."""

    def append_group(self, log: FileLog, appends: Sequence[Append]) -> list[Any]:
        """Append in place of `FileLog.append_group`, with which a shard writes."""
        kinds = [kind for one in appends if (kind := self._kind(one.agent_id, one.drafts))]
        self._thread.kinds = kinds
        try:
            found = _append_group(log, appends)
        finally:
            self._thread.kinds = []
        self._reach(kinds, "durable")
        return found

    def write(self, file: RealFile, parts: Sequence[bytes], offset: int) -> None:
        """Write in place of `RealFile.write`."""
        kinds = getattr(self._thread, "kinds", [])
        if any(self.stop == f"{kind} torn" for kind in kinds):
            frame = b"".join(parts)
            _write(file, [frame[: len(frame) // 2]], offset)
            self._reach(kinds, "torn")
        _write(file, parts, offset)
        self._reach(kinds, "written")

    def sync(self, file: RealFile) -> None:
        """Sync in place of `RealFile.sync`."""
        _sync(file)
        self._reach(getattr(self._thread, "kinds", []), "synced")

    def _kind(self, agent_id: str, drafts: Sequence[Draft]) -> str:
        """Return the agent of a commit and its kind, numbered from the second one of a round on; empty for a commit
        without a message.
        """
        types = {draft.type for draft in drafts}
        kind = next(
            (kind for sign, kind in SIGNS.items() if sign in types), "answer" if "message_sent" in types else ""
        )
        if not kind:
            return ""
        self.seen[f"{agent_id} {kind}"] += 1
        number = self.seen[f"{agent_id} {kind}"]
        return f"{agent_id} {kind}{number if number > 1 else ''}"

    def _reach(self, kinds: Sequence[str], end: str) -> None:
        if any(self.stop == f"{kind} {end}" for kind in kinds):
            os.kill(os.getpid(), signal.SIGKILL)


ARMED = ArmedHost()


def arm(_host: object, stop: str, wait_s: float) -> int:
    """Let this process die at the point `stop` of the next round (empty: at none), and return its process id.

    `wait_s`: seconds after which a wait for an answer ends; 0: after the usual time.
    """
    ARMED.stop = stop
    ARMED.seen.clear()
    mail_functions.PER_MINUTE_MAX = 10_000  # rounds are faster than conversations
    if wait_s:
        mail_functions.MICROSECONDS = round(wait_s * 1_000_000 / (mail_functions.WAIT_MINUTES * 60))
    # Functions, because a bound method in a class would not be given the log or the file.
    FileLog.append_group = lambda log, appends: ARMED.append_group(log, appends)  # type: ignore[method-assign]  # noqa: PLW0108
    RealFile.write = lambda file, parts, offset: ARMED.write(file, parts, offset)  # type: ignore[method-assign]  # noqa: PLW0108
    RealFile.sync = lambda file: ARMED.sync(file)  # type: ignore[method-assign]  # noqa: PLW0108
    return os.getpid()
