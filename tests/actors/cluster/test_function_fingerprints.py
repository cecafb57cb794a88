"""Fingerprints of pickled functions: the same code has the same fingerprint in every process, and edited code has
another.
"""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from everlog.actors.agent.commands import SessionCapabilities
from everlog.actors.cluster.pickling import pack, unpack
from tests.contract.agent_functions import OWN_FILE
from tests.contract.contract_agents import module_from
from tests.tidy.parsed_source import ROOT

MARKS = """
import sys
from pathlib import Path
from ray import cloudpickle
from everlog.actors.agent.commands import SessionCapabilities
from everlog.actors.cluster.pickling import pack
from everlog.interfaces.common.bootstrap import tools_in
print(pack(SessionCapabilities(tools=tuple(tools_in(Path(sys.argv[1])))), cloudpickle).code_digest)
"""
ALL_KINDS = """
from dataclasses import dataclass
from enum import Enum

import msgspec

from everlog.actors.functions.tools import tool

WORDS = {"here", "there", "everywhere"}


class Sky(Enum):
    CLEAR = "clear"


class Place(msgspec.Struct):
    town: str = "Oslo"


@dataclass
class Port:
    depth_m: int = 7


@tool
def look(place: Place, at: str = "here") -> str:
    '''Look.

    Args:
        place: Where.
        at: At what.
    '''
    if at in {"up", "down", "aside"} or at in WORDS:
        return f"{Sky.CLEAR} {Port().depth_m}"
    return "nothing"
"""
EDITS = (
    ("", ""),
    ('"rain"', '"snow"'),
    ('"sun"', '"fog"'),
    ('country: str = "NO"', 'country: str = "SE"'),
    ("return Sky(self.town)", "return Sky(self.country)"),
    ("place == Place", "place != Place"),
)


def mark(file: Path, seed: int) -> str:
    """Return the fingerprint of a file's functions, computed in a fresh process."""
    own = {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONHASHSEED": str(seed)}
    child = subprocess.run([sys.executable, "-c", MARKS, str(file)], capture_output=True, env=own, check=False)
    assert child.returncode == 0, child.stderr.decode()
    return child.stdout.decode().strip()


def test_the_same_code_has_the_same_fingerprint_in_every_process(tmp_path: Path) -> None:
    """Classes and sets, whose pickled bytes differ between processes, do not change the fingerprint, and neither does a
    compiled cache of the file.
    """
    file = tmp_path / "sailor.py"
    file.write_text(ALL_KINDS)
    first = mark(file, 1)
    assert mark(file, 2) == first


def test_edited_code_has_another_fingerprint(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A change of anything that a function uses changes its fingerprint, though its name and schema are the same."""
    from ray import cloudpickle

    monkeypatch.setattr(sys, "dont_write_bytecode", True)  # the same file, changed within a second
    found = set()
    for edit in EDITS:
        own = module_from(tmp_path / "sailor.py", OWN_FILE.replace(*edit), monkeypatch)
        packed = pack(SessionCapabilities(tools=(own.plan, own.weather)), cloudpickle)
        assert packed is not None
        found.add(unpack(packed).same)
    assert len(found) == len(EDITS)
    assert len({names for names, *_ in found}) == 2, "one of the edits changes a schema"
