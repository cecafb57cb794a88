"""Tool rules by Letta's published client: all nine types are taken, shown as they were given, and hold in a turn."""

import asyncio
from pathlib import Path
from typing import Any

import letta_client
import pytest
from letta_client import Letta

from everlog.events import AgentConfigured, ApprovalRule
from everlog.interfaces.imports.letta_tool_rules import LettaToolRule, letta_rules, rules_of
from tests.support.cli.command_line import Script, completion, says
from tests.support.http.letta_server import created, letta, texts

RULES: list[dict[str, Any]] = [
    {"type": "run_first", "tool_name": "conversation_search", "args": {"query": "boat"}},
    {
        "type": "constrain_child_tools", "tool_name": "conversation_search",
        "children": ["core_memory_append", "send_message"],
        "child_arg_nodes": [{"name": "core_memory_append", "args": {"name": "human"}}],
    },
    {"type": "parent_last_tool", "tool_name": "conversation_search", "children": ["core_memory_append"]},
    {
        "type": "conditional", "tool_name": "core_memory_append", "child_output_mapping": {"None": "send_message"},
        "default_child": "send_message",
    },
    {"type": "max_count_per_step", "tool_name": "core_memory_append", "max_count_limit": 1},
    {"type": "continue_loop", "tool_name": "core_memory_replace"},
    {"type": "required_before_exit", "tool_name": "core_memory_append"},
    {"type": "requires_approval", "tool_name": "archival_memory_insert"},
    {"type": "exit_loop", "tool_name": "send_message"},
]  # fmt: skip


def shown(agent: Any) -> list[dict[str, Any]]:
    """Return the rules of an agent as the client reads them, without what is not set."""
    return [rule.model_dump(exclude_none=True) for rule in agent.tool_rules]


def by_type(rules: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return sorted(rules, key=lambda rule: rule["type"])


def test_rules_of_every_type_are_kept_and_hold(tmp_path: Path) -> None:
    """The client reads the rules that it gave. A reply that breaks one is refused in words, and the model goes by them
    in its next step.
    """
    model = Script([
        completion(("archival_memory_insert", {"content": "Early."})),
        completion(("conversation_search", {"query": "x"})),
        completion(("core_memory_append", {"name": "persona", "content": "Sails."})),
        says("Noted."),
    ])  # fmt: skip

    def work(client: Letta) -> None:
        agent = created(client, tool_rules=RULES)
        assert by_type(shown(client.agents.retrieve(agent))) == by_type(RULES)
        answer = client.agents.messages.create(agent, input="I sail")
        assert texts(answer.messages) == ["Noted."]
        (refused, *_) = [one for one in answer.messages if one.message_type == "tool_return_message"]
        assert (refused.status, "Allowed now: conversation_search." in refused.tool_return) == ("error", True)
        assert "Sails." in client.agents.blocks.retrieve("human", agent_id=agent).value

    async def main() -> None:
        async with letta(tmp_path, model) as server:
            await server.run(work)

    asyncio.run(main())


def test_a_change_of_the_rules_replaces_all_of_them(tmp_path: Path) -> None:
    """Rules about approvals that have patterns are everlog's own, and stay; a wrong rule is refused, and changes
    nothing.
    """

    def work(client: Letta) -> None:
        agent = created(client, tool_rules=RULES)
        client.agents.update(agent, tool_rules=[RULES[-2]])
        assert shown(client.agents.retrieve(agent)) == [RULES[-2]]
        for wrong, words in (
            ([{"type": "exit", "tool_name": "x"}], "one of the types run_first"),
            ([{"type": "exit_loop", "tool_name": "fly"}], "no function of this agent"),
            ([{"type": "max_count_per_step", "tool_name": "send_message", "max_count_limit": 0}], "number of calls"),
        ):
            with pytest.raises(letta_client.BadRequestError, match=words):
                client.agents.update(agent, tool_rules=wrong)
        assert shown(client.agents.retrieve(agent)) == [RULES[-2]]
        client.agents.update(agent, tool_rules=[])
        assert shown(client.agents.retrieve(agent)) == []

    async def main() -> None:
        async with letta(tmp_path, Script([])) as server:
            await server.run(work)

    asyncio.run(main())


def test_rules_are_read_as_they_are_written() -> None:
    """Every rule of Letta becomes the same rule again; an approval of a pattern is not one of Letta's."""
    rules = rules_of(RULES)
    approvals = [ApprovalRule("delete_*"), *rules.approvals]
    config = AgentConfigured(model="m", window=8192, renderer=0, rules=rules.functions, approvals=approvals, text="")
    again = letta_rules(config)
    assert all(isinstance(rule, LettaToolRule) for rule in again)
    assert rules_of([{name: getattr(r, name) for name in r.__struct_fields__} for r in again]) == rules
