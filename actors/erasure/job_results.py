"""Forget the results of jobs that servers keep in the store: a rerun or a verification holds texts of records.

Used by `erase_planned`. Results are forgotten for all agents: a result says nothing of the agents whose words it holds,
such as those of a fork or of its ancestors, and can be had again by another verification or comparison.
"""

from pathlib import Path

import msgspec

from everlog.store import write_whole

JOBS_FOLDER = "jobs"
"""Folder of the store with a file for each job of a server."""
WITHOUT_TEXTS = ("erasure",)
"""Kinds of jobs whose results hold numbers only."""


def forget_results(root: Path) -> None:
    """Remove the results of the jobs that have ended, and keep that they did. A job that runs has none."""
    for path in sorted((root / JOBS_FOLDER).glob("*.json")):
        try:
            job = msgspec.json.decode(path.read_bytes(), type=dict)
        except FileNotFoundError:  # a server has just removed the file of an old job
            continue
        except msgspec.MsgspecError:  # it is no job, but may hold texts of one
            path.unlink(missing_ok=True)
            continue
        if job.get("result") is not None and job.get("kind") not in WITHOUT_TEXTS:
            write_whole(path, msgspec.json.encode({**job, "result": None}))
