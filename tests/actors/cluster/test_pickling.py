"""Functions that are pickled for another process, which has only everlog and the installed packages."""

import os
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from everlog.actors.agent.commands import SessionCapabilities
from everlog.actors.cluster.pickling import PickledCapabilities, pack, unpack
from everlog.actors.functions.tools import tool
from everlog.events import BadInput
from tests.contract.agent_functions import OWN_FILE, double
from tests.contract.contract_agents import module_from
from tests.tidy.parsed_source import ROOT

LOADS = """
import sys, pickle
from everlog.actors.cluster.pickling import unpack
means = unpack(pickle.load(sys.stdin.buffer))
own = means.tools[0]
print(own.name, own.function(**own.bind(eval(sys.argv[1]))), means.base_url)
"""


@pytest.fixture
def cloud() -> Any:
    from ray import cloudpickle

    return cloudpickle


def elsewhere(capabilities: SessionCapabilities | None, arguments: dict[str, Any], tmp_path: Path) -> str:
    """Return the function's result in a process that starts in another folder."""
    import pickle

    child = subprocess.run(
        [sys.executable, "-c", LOADS, repr(arguments)], input=pickle.dumps(capabilities), capture_output=True,
        cwd=tmp_path, env={**os.environ, "PYTHONPATH": str(ROOT)}, check=False,
    )  # fmt: skip
    assert child.returncode == 0, child.stderr.decode()
    return child.stdout.decode().strip()


def test_a_function_of_an_own_file(cloud: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A function takes the classes of its file along: Structs with their fields, defaults and methods, and other
    classes.
    """
    own = module_from(tmp_path / "sailor.py", OWN_FILE, monkeypatch)
    packed = pack(SessionCapabilities(tools=(own.weather,), base_url="http://here"), cloud)
    assert elsewhere(packed, {"place": {"town": "Oslo"}}, tmp_path) == "weather rain http://here"


def test_pickled_capabilities_compare_equal(cloud: Any) -> None:
    """Capabilities that are pickled twice compare equal, so that no agent is configured again because of them."""
    capabilities = SessionCapabilities(tools=(double,), base_url="http://here")
    packed = pack(capabilities, cloud)
    assert isinstance(packed, PickledCapabilities)
    assert unpack(packed).same == unpack(pack(capabilities, cloud)).same
    assert unpack(pack(SessionCapabilities(), cloud)).same == SessionCapabilities().same
    assert pack(packed, cloud) is packed
    assert pack(None, cloud) is None
    assert unpack(capabilities) is capabilities


def test_functions_that_cannot_be_pickled_are_named(cloud: Any) -> None:
    """A function that refers to an object of this process only is refused by name."""
    lock = threading.Lock()

    @tool(effect="read_only")
    def locked() -> bool:
        """Tell whether it is locked."""
        return lock.locked()

    with pytest.raises(BadInput, match=r"^The functions locked cannot be sent .* made inside them"):
        pack(SessionCapabilities(tools=(locked,)), cloud)
    assert cloud.list_registry_pickle_by_value() == set()


@pytest.mark.parametrize("data", [b"nonsense", b"cnowhere\nthing\n."])
def test_functions_that_cannot_be_unpickled_are_refused(data: bytes) -> None:
    """Bytes that this process cannot load raise BadInput with the reason."""
    with pytest.raises(BadInput, match=r"^The functions cannot be loaded where the agent runs"):
        unpack(PickledCapabilities(data=data))


def test_capabilities_with_only_an_endpoint_are_pickled(cloud: Any) -> None:
    """The supervisor can compare the pickled capabilities with empty ones, and passes them on when a timer wakes the
    agent.
    """
    packed = pack(SessionCapabilities(base_url="http://here"), cloud)
    assert packed is not None
    assert packed.same != SessionCapabilities().same
    assert unpack(packed).base_url == "http://here"
