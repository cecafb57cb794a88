"""Test agents and functions in milliseconds, without a disk, a network or a real clock.

    from everlog.testing import ScriptedModel, call, system

    def test_the_agent_greets() -> None:
        with system(ScriptedModel(["Hello!"])) as agents:
            assert agents.agent("sam").ask("Hi").text == "Hello!"

The parts are in `everlog.interfaces.testing`; nothing here needs pytest. docs/how_to/test_your_agents.md shows each.
"""

from everlog.actors.gateway.gateway_limits import GatewayLimits
from everlog.interfaces.testing.manual_clock import CountingIds, ManualClock
from everlog.interfaces.testing.scripted_model import ScriptedModel
from everlog.interfaces.testing.scripted_reply import RawReply, ScriptedCall, ScriptedReply, call, reply
from everlog.interfaces.testing.scripted_system import ScriptedSystem, SyncScriptedSystem, system
from everlog.interfaces.testing.seen_request import SeenRequest

__all__ = [
    "CountingIds",
    "GatewayLimits",
    "ManualClock",
    "RawReply",
    "ScriptedCall",
    "ScriptedModel",
    "ScriptedReply",
    "ScriptedSystem",
    "SeenRequest",
    "SyncScriptedSystem",
    "call",
    "reply",
    "system",
]
