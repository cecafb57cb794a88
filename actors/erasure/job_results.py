"""Forget the results of jobs that servers keep in the store: a rerun or a verification holds texts of records.

Used by `erase_planned`. Results are forgotten for all agents: a result says nothing of the agents whose words it holds,
such as those of a fork or of its ancestors, and can be had again by another verification or comparison.
"""

from pathlib import Path

import msgspec

from everlog.store import names_beside, read_whole, remove_whole, write_whole

JOBS_FOLDER = "jobs"
"""Folder of the store with a file for each job of a server."""
WITHOUT_TEXTS = ("erasure",)
"""Kinds of jobs whose results hold numbers only."""


def forget_results(root: Path) -> None:
    """Remove the results of the jobs that have ended, and keep that they did. A job that runs has none."""
    for name in names_beside(root / JOBS_FOLDER):
        path = root / JOBS_FOLDER / name
        content = read_whole(path) if name.endswith(".json") else None
        if content is None:  # a server has just removed the file of an old job
            continue
        try:
            job = msgspec.json.decode(content, type=dict)
        except msgspec.MsgspecError:  # it is no job, but may hold texts of one
            remove_whole(path)
            continue
        if job.get("result") is not None and job.get("kind") not in WITHOUT_TEXTS:
            write_whole(path, msgspec.json.encode({**job, "result": None}))
