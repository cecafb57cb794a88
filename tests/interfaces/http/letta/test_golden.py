"""The golden transcript of Letta's surface, and the version of the client that it was made with."""

import re
from importlib import metadata
from pathlib import Path

from letta_client import Letta

from tests.support.http.letta_server import client_methods
from tests.support.http.letta_transcript import GOLDEN, transcript

ROOT = Path(__file__).resolve().parents[4]
METHODS = 127
"""Number of methods of the client of that version that send a request."""


def test_the_conversation_of_a_client_and_a_server_is_the_golden_one(tmp_path: Path) -> None:
    """The main job is said in the same bytes as in the golden transcript, but for times and random ids."""
    assert transcript(tmp_path) == GOLDEN.read_text(encoding="utf-8")


def test_the_client_is_the_one_that_is_pinned_and_that_the_surface_was_made_for() -> None:
    """The installed client has the version that pyproject.toml pins, and its methods are those that were looked at: a
    newer one that has others fails here.
    """
    pinned = re.search(r'"letta-client==([\d.]+)"', (ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    assert pinned is not None
    assert pinned[1] == metadata.version("letta-client")
    with Letta(base_url="http://127.0.0.1:9", api_key=None) as client:
        names = [name for name, _ in client_methods(client)]
    assert len(names) == METHODS
