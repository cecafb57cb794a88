"""The SDK is loaded by processes that call a server, and by no others."""

import subprocess
import sys
from pathlib import Path

import pytest

from everlog.actors.agent.commands import SessionCapabilities
from everlog.actors.cluster.pickling import pack, unpack
from everlog.actors.mcp.mcp_functions import functions_of
from everlog.actors.mcp.offered_tool import ServerHints, offered_tool
from tests.support.mcp.server_worlds import raw_entry
from tests.tidy.parsed_source import ROOT

PROBE = """
import sys
from everlog.interfaces.cli.main import main
assert main(["--store", sys.argv[1], *sys.argv[2:]]) == 0
sdk = ("mcp", "mcp_types", "pydantic", "anyio")
print([name for name in sys.modules if name.partition(".")[0] in sdk], file=sys.stderr)
"""


def loaded(store: Path, *words: str) -> str:
    """Return the modules of the SDK that a command loads."""
    command = [sys.executable, "-c", PROBE, str(store), *words]
    run = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    return run.stderr.splitlines()[-1]


def test_an_agent_without_servers_loads_nothing_of_the_sdk(tmp_path: Path) -> None:
    """A message to an agent without servers, and one to an agent that calls none, import nothing of it."""
    assert loaded(tmp_path / "store", "send", "sam", "Hi", "--runtime", "local") == "[]"
    pytest.importorskip("mcp", reason="the extra mcp is not installed")
    line = " ".join([raw_entry("plain").command, *raw_entry("plain").args])
    assert "mcp.client" in loaded(tmp_path / "store", "mcp", "add", "raw", "--command", line)
    assert loaded(tmp_path / "store", "send", "sam", "Hi", "--mcp", "raw", "--runtime", "local") == "[]"


def test_a_function_goes_to_another_process_with_its_server() -> None:
    """A host of a cluster gets the function, the description of its server, and no secret."""
    cloudpickle = pytest.importorskip("ray.cloudpickle")
    tool = offered_tool("look", "Look.", {"type": "object"}, ServerHints(read_only=True))
    given = SessionCapabilities(tools=tuple(functions_of("raw", raw_entry("plain", token=""), [tool])))
    packed = pack(given, cloudpickle)
    assert packed is not None
    (there,) = unpack(packed).tools
    assert (there.name, there.effect, there.bind({})) == ("raw__look", "read_only", {})
    assert there.function.args[1:] == given.tools[0].function.args[1:]
    again = pack(given, cloudpickle)
    assert again is not None
    assert again.code_digest == packed.code_digest
