"""Keep the description, the tags and the metadata that clients of Letta give to an agent, in one small file for each.

They are labels for programs: the agent never sees them, and they change nothing that it does. So they are in the store
beside the logs, as the files of jobs and webhooks are, and not in the agent's log. Its functions read and write files.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from everlog.interfaces.http.letta.letta_calls import refused
from everlog.interfaces.http.runs.agent_digests import digest_of
from everlog.store import read_whole, remove_whole, write_whole
from everlog.store.base.disk import parse_json

FOLDER = "letta"
BYTES_MAX = 64 * 1024


class AgentLabels(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Labels of one agent."""

    description: str = ""
    tags: tuple[str, ...] = ()
    metadata: Mapping[str, Any] = {}


NO_LABELS = AgentLabels()


def _path(root: Path, stream: str) -> Path:
    return root / FOLDER / f"{digest_of(stream)}.json"


def read_labels(root: Path, stream: str) -> AgentLabels:
    """Return the labels of an agent; none if it has no file. Raises CorruptLog, StoreError."""
    path = _path(root, stream)
    content = read_whole(path)
    return NO_LABELS if content is None else parse_json(content, AgentLabels, path)


def write_labels(root: Path, stream: str, labels: AgentLabels) -> None:
    """Replace the labels of an agent. Raises the refusal of labels that are too large."""
    content = msgspec.json.encode(labels)
    if len(content) > BYTES_MAX:
        raise refused(f"Description, tags and metadata together have up to {BYTES_MAX:,} bytes, not {len(content):,}.")
    if labels == NO_LABELS:
        remove_whole(_path(root, stream))
        return
    write_whole(_path(root, stream), content)


def changed_labels(
    labels: AgentLabels, description: str | None, tags: list[str] | None, metadata: Mapping[str, Any] | None
) -> AgentLabels:
    """Return labels with changes; None: as before."""
    return AgentLabels(
        description=labels.description if description is None else description,
        tags=labels.tags if tags is None else tuple(dict.fromkeys(tags)),
        metadata=labels.metadata if metadata is None else metadata,
    )
