"""Nodes of a cluster as separate machines: each has a host name, a home and a folder for temporary files of its own.
What one does below the folder of another is found.
"""

import os
from collections.abc import Mapping
from pathlib import Path

SITE = '''
"""Give this process the host name of its machine, and note each path of another machine that it touches."""
import os, sys

NAME, ALL = os.environ["MACHINE_NAME"], os.environ["MACHINES"]
OWN = os.path.join(ALL, NAME) + os.sep
REAL = os.uname()
os.uname = lambda: os.uname_result((REAL.sysname, NAME, REAL.release, REAL.version, REAL.machine))
NOTED = os.open(OWN + "touched", os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC)

def note(event, arguments):
    if event == "open" or event.startswith(("os.", "shutil.")):
        for path in arguments:
            if isinstance(path, (str, bytes)) and (text := os.fsdecode(path)).startswith(ALL + os.sep):
                os.write(NOTED, b"own\\n" if (text + os.sep).startswith(OWN) else f"{event} {text}\\n".encode())

sys.addaudithook(note)
'''
"""Module that Python imports at the start of each process of a node."""


class Machines:
    """Folders of the machines below one folder, `node-0` and so on."""

    def __init__(self, folder: Path, settings: Mapping[str, str]) -> None:
        """Take the environment that all nodes share, `settings`."""
        self.folder = folder.resolve()
        self._settings = settings

    def environment(self, number: int) -> dict[str, str]:
        """Return the environment of a node whose folder is made now."""
        home = self.folder / f"node-{number}"
        (home / "tmp").mkdir(parents=True)
        (home / "sitecustomize.py").write_text(SITE)
        path = os.pathsep.join([str(home), *filter(None, [os.environ.get("PYTHONPATH", "")])])
        names = {"MACHINE_NAME": home.name, "MACHINES": str(self.folder)}
        return {**self._settings, **names, "HOME": str(home), "TMPDIR": str(home / "tmp"), "PYTHONPATH": path}

    def touched(self) -> list[str]:
        """Return what processes did below folders of other machines, as far as Python has seen it. Raises
        AssertionError if a machine has noted nothing at all.
        """
        lines: list[str] = []
        for home in self.folder.glob("node-*"):
            noted = (home / "touched").read_text().splitlines()
            assert "own" in noted, f"no process of {home.name} is watched"
            lines += [f"{home.name}: {line}" for line in noted if line != "own"]
        return lines

    def held(self, number: int, pids: Mapping[int, str]) -> list[str]:
        """Return the files below folders of other machines that processes of a node have open or mapped, whatever code
        did it.
        """
        own, found = f"{self.folder}/node-{number}/", set()
        for pid in pids:
            places = [Path(f"/proc/{pid}/cwd"), *Path(f"/proc/{pid}").glob("fd/*")]
            try:
                paths = [str(place.readlink()) for place in places]
                paths += [line.split(maxsplit=5)[-1] for line in Path(f"/proc/{pid}/maps").read_text().splitlines()]
            except OSError:  # the process has ended, or has closed the file
                continue
            found |= {path for path in paths if path.startswith(f"{self.folder}/") and not path.startswith(own)}
        return sorted(found)
