"""Servers that ask a person: the call waits in the log as one for an approval does, and continues with the answers."""

import asyncio
import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import pytest

import everlog
from everlog.actors.mcp.server_entry import ServerEntry
from everlog.actors.replay.rebuild_check import rebuild, verify
from everlog.actors.rules.approvals import Decision, decided
from everlog.events import ApprovalRequested, FunctionResult, FunctionStarted, event_of
from everlog.interfaces.testing.scripted_system import SyncScriptedSystem
from everlog.testing import ScriptedModel, call, system
from tests.support.agent_world import World, completion, say
from tests.support.agents.cut_logs import commits_of, cut, finish
from tests.support.mcp.server_worlds import connections_to, functions

pytest.importorskip("mcp", reason="the extra mcp is not installed")

from mcp.server import MCPServer
from mcp.server.mcpserver import Context
from mcp.types import (
    CreateMessageRequest,
    CreateMessageRequestParams,
    ElicitRequest,
    ElicitRequestFormParams,
    ElicitRequestURLParams,
    InputRequiredResult,
)

ENTRY = ServerEntry(command="unused", approval=False)
PLACE = {
    "type": "object", "required": ["city"],
    "properties": {"city": {"type": "string"}, "floor": {"type": "integer", "default": 1}},
}  # fmt: skip
PIN = {"type": "object", "required": ["pin"], "properties": {"pin": {"type": "string"}}}


class Shop:
    """A server that ships after it was told where to, and keeps what it was asked."""

    def __init__(self, *questions: Any, state: str | None = "s") -> None:
        """Ask these questions, one a request; each has its requests by name."""
        self.questions = questions
        self.state = state
        self.asked: list[tuple[str, Any, str | None]] = []
        """Item, answers and state of each request."""

    def server(self) -> Any:
        made = MCPServer("shop")

        @made.tool()
        async def ship(item: str, ctx: Context) -> Any:
            """Ship an item."""
            given = ctx.input_responses
            answers = None if given is None else {
                name: (one.action, one.content) for name, one in given.items()
            }  # fmt: skip
            self.asked.append((item, answers, ctx.request_state))
            if len(self.asked) <= len(self.questions):
                return InputRequiredResult(
                    input_requests=self.questions[len(self.asked) - 1],
                    request_state=None if self.state is None else f"{self.state}{len(self.asked)}",
                )
            return f"shipped {item}: {answers}"

        return made


def form(message: str, schema: Any = PLACE) -> Any:
    return ElicitRequest(params=ElicitRequestFormParams(message=message, requested_schema=schema))


@contextmanager
def selling(shop: Shop, *replies: Any) -> Iterator[SyncScriptedSystem]:
    """Run a system whose agents can call the shop; the model first does that."""
    with connections_to(shop.server()) as made:
        tools = list(functions(ENTRY, made, "shop").values())
        model = ScriptedModel([call("shop__ship", item="tea"), *replies])
        with system(model, tools=tools) as agents:
            yield agents


def requests(agents: SyncScriptedSystem) -> Sequence[tuple[int, ApprovalRequested]]:
    """Return the requests in the log, each with its seq."""
    found = ((record.seq, event_of(record)) for record in agents.log("sam"))
    return [(seq, event) for seq, event in found if isinstance(event, ApprovalRequested)]


def results(agents: SyncScriptedSystem) -> list[FunctionResult]:
    found = [event for event in map(event_of, agents.log("sam")) if isinstance(event, FunctionResult)]
    return [event for event in found if event.name != "send_message"]


def answered(item: str = "tea", **forms: Any) -> dict[str, Any]:
    return {"item": item, "$answers": forms}


def test_a_question_waits_and_its_call_continues_with_the_answer() -> None:
    """The turn ends, other messages are answered, and the server gets the answers with its own state, once."""
    shop = Shop({"place": form("Where to?")})
    with selling(shop, "Hello.", "It is on its way.") as agents:
        sam = agents.agent("sam")
        assert sam.ask("Ship tea").text == ""
        ((seq, request),) = requests(agents)
        assert request.question is not None
        assert request.question.text == "Where to?"
        assert request.question.state
        assert json.loads(request.arguments) == answered(place={"city": None, "floor": 1})
        assert "whom it asks: Where to?" in results(agents)[0].text
        assert sam.ask("Hello?").text == "Hello."
        assert shop.asked == [("tea", None, None)]
        answer = sam.approve(seq, arguments=answered(place={"city": "Oslo", "floor": None})).reply()
        assert answer.text == "It is on its way."
        assert shop.asked[1:] == [("tea", {"place": ("accept", {"city": "Oslo"})}, "s1")]
        assert results(agents)[-1].text.startswith("shipped tea")
        agents.assert_verified("sam")


def test_a_second_question_waits_again() -> None:
    """A call may ask again when it continues; each question is answered for itself, with its own state."""
    shop = Shop({"place": form("Where to?")}, {"pin": form("Your PIN?", PIN)})
    with selling(shop, "It asks for the PIN.", "Done.") as agents:
        sam = agents.agent("sam")
        sam.ask("Ship tea")
        sam.approve(requests(agents)[0][0], arguments=answered(place={"city": "Oslo"})).reply()
        first, (seq, second) = requests(agents)
        assert second.question is not None
        assert (second.question.text, json.loads(second.arguments)) == ("Your PIN?", answered(pin={"pin": None}))
        with pytest.raises(everlog.AlreadyDecided):
            sam.approve(first[0], arguments=answered(place={"city": "Rome"})).reply()
        assert sam.approve(seq, arguments=answered(pin={"pin": "1234"})).reply().text == "Done."
        assert [state for _, _, state in shop.asked] == [None, "s1", "s2"]
        agents.assert_verified("sam")


def test_a_server_without_a_state_is_answered_too() -> None:
    """The state is the server's own affair: without one it gets the answers alone, and of several forms all."""
    shop = Shop({"place": form("Where to?"), "pin": form("Your PIN?", PIN)}, state=None)
    with selling(shop, "Done.") as agents:
        sam = agents.agent("sam")
        sam.ask("Ship tea")
        ((seq, request),) = requests(agents)
        assert request.question is not None
        assert request.question.text == "Where to? Your PIN?"
        sam.approve(seq, arguments=answered(place={"city": "Oslo"}, pin={"pin": "1"})).reply()
        assert shop.asked[1] == (
            "tea", {"place": ("accept", {"city": "Oslo"}), "pin": ("accept", {"pin": "1"})}, None,
        )  # fmt: skip
        agents.assert_verified("sam")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (None, "The call asks: Where to\\? Fill in city of 'place'"),
        (answered(place={"floor": 2}), "Fill in city of 'place'"),
        ({"item": "tea"}, "its answers are an object of objects in '\\$answers'"),
        ({"item": "tea", "$answers": "Oslo"}, "its answers are an object of objects"),
        (answered(place={"city": "Oslo", "size": 3}), "does not ask for size in 'place'"),
        (answered(place={"city": "Oslo"}, other={}), "has no part other"),
    ],
)
def test_a_wrong_answer_decides_nothing(arguments: Any, words: str) -> None:
    """The error says what is missing or unknown, and the question still waits."""
    shop = Shop({"place": form("Where to?")})
    with selling(shop, "Done.") as agents:
        sam = agents.agent("sam")
        sam.ask("Ship tea")
        seq = requests(agents)[0][0]
        with pytest.raises(everlog.BadInput, match=words):
            sam.approve(seq, arguments=arguments).reply()
        assert len(shop.asked) == 1
        sam.approve(seq, arguments=answered(place={"city": "Oslo"})).reply()
        assert len(shop.asked) == 2


def test_a_refused_question_ends_its_call() -> None:
    """The server is not asked again, and the model is told."""
    shop = Shop({"place": form("Where to?")})
    with selling(shop, "Then not.") as agents:
        sam = agents.agent("sam")
        sam.ask("Ship tea")
        assert sam.refuse(requests(agents)[0][0], "None of its business.").reply().text == "Then not."
        assert len(shop.asked) == 1
        agents.assert_verified("sam")


def test_no_effect_overtakes_a_question() -> None:
    """Later calls of the same reply do not run, as after a call that waits for an approval."""
    shop = Shop({"place": form("Where to?")})
    with connections_to(shop.server()) as made:
        tools = list(functions(ENTRY, made, "shop").values())
        model = ScriptedModel([[call("shop__ship", item="tea"), call("shop__ship", item="milk")], "Done."])
        with system(model, tools=tools) as agents:
            agents.agent("sam").ask("Ship tea and milk")
            assert [item for item, _, _ in shop.asked] == ["tea"]
            assert [result.ok for result in results(agents)] == [True, False]
            agents.assert_verified("sam")


def test_a_model_cannot_answer_for_a_person() -> None:
    """Answers among the arguments of the model are an unknown argument, and nothing is called."""
    shop = Shop({"place": form("Where to?")})
    with connections_to(shop.server()) as made:
        tools = list(functions(ENTRY, made, "shop").values())
        given = {"item": "tea", "$answers": {"place": {"city": "Oslo"}}}
        with system(ScriptedModel([call("shop__ship", **given), "Oh."]), tools=tools) as agents:
            agents.agent("sam").ask("Ship tea")
            assert shop.asked == []
            assert "has no parameter $answers" in results(agents)[0].text


def test_a_page_of_the_web_is_declined() -> None:
    """A server that wants a person to visit an address is told no: the address is a stranger's."""
    visit = ElicitRequest(
        params=ElicitRequestURLParams(message="Pay here", url="http://127.0.0.1/", elicitation_id="x")
    )
    shop = Shop({"visit": visit})
    with selling(shop, "Done.") as agents:
        agents.agent("sam").ask("Ship tea")
        assert requests(agents) == []
        assert shop.asked[1] == ("tea", {"visit": ("decline", None)}, "s1")
        assert results(agents)[0].ok
        agents.assert_verified("sam")


def test_a_server_that_asks_for_the_model_is_not_answered() -> None:
    """A server gets nothing of the agent's budget: its call fails, with words for the model."""
    sampling = CreateMessageRequest(params=CreateMessageRequestParams(messages=[], max_tokens=10))
    with selling(Shop({"think": sampling}), "Oh.") as agents:
        agents.agent("sam").ask("Ship tea")
        (result,) = results(agents)
        assert (result.ok, result.unknown) == (False, True)
        assert "which is not offered" in result.text
        agents.assert_verified("sam")


def test_a_server_that_asks_without_end_is_left() -> None:
    """A server that asks for nothing, again and again, fails after some requests."""
    shop = Shop(*[{}] * 50)
    with selling(shop, "Oh.") as agents:
        agents.agent("sam").ask("Ship tea")
        assert "asked 10 times" in results(agents)[0].text
        assert len(shop.asked) == 10


def test_an_endless_question_is_not_kept() -> None:
    """A question whose forms would fill the log fails the call."""
    big = {"type": "object", "properties": {f"field{n}": {"type": "string"} for n in range(10_000)}}
    with selling(Shop({"big": form("?", big)}), "Oh.") as agents:
        agents.agent("sam").ask("Ship tea")
        assert requests(agents) == []
        assert "question is longer than 100,000 characters" in results(agents)[0].text


def test_a_question_survives_a_crash_after_any_commit() -> None:
    """Cut the log after each commit: the question waits, or its outcome is unknown if its call had begun; what a person
    answered reaches the server at most once, and every turn ends.
    """
    shop = Shop({"place": form("Where to?")}, state=None)
    with connections_to(shop.server()) as made:
        tools = list(functions(ENTRY, made, "shop").values())
        called = completion(calls=[("shop__ship", {"item": "tea", "request_heartbeat": True})])
        whole = World(called, say("It is on its way."), tools=tools)
        asyncio.run(whole.tell("Ship tea"))
        answer(whole)
        assert len(shop.asked) == 2
        for number in [number for number, commit in commits_of(whole.log()) if commit[0].turn]:
            world = cut(whole, number)
            before = [event_of(record) for record in world.log()]
            asked = any(isinstance(event, ApprovalRequested) for event in before)
            shop.asked[:] = shop.asked[:1] if asked else []
            finish(world)
            answer(world)
            began = [event for event in before if isinstance(event, FunctionStarted)]
            ended = [event for event in before if isinstance(event, FunctionResult) and event.name == "shop__ship"]
            outcomes = [e for e in map(event_of, world.log()) if isinstance(e, FunctionResult) and "__" in e.name]
            if not outcomes:
                assert not began, number  # the message came, and the model of the next process says something else
                continue
            assert outcomes[-1].unknown == (len(began) > len(ended)), number
            assert len(shop.asked) <= 2, number
            with world.system.view("sam") as view:
                assert {turn["status"] for turn in view.rows("turns")} == {"done"}, number
                assert rebuild(view).faults == []
                assert verify(view, world.system.tools).faults == []


def answer(world: World) -> None:
    """Answer the question that waits, if one does, and run the agent."""

    async def run() -> None:
        async with world.system.agent("sam", world.settings) as agent:
            for row in await agent.rows("approvals"):
                if row["decision"] == "waiting":
                    given = Decision(request=row["seq"], approve=True, arguments=json.dumps(answered(place=OSLO)))
                    await agent.receive(decided("sam", agent.records(row["seq"]), given, world.system.tools, 0))
            await agent.run()

    asyncio.run(run())


OSLO = {"city": "Oslo"}


def test_a_question_of_an_agent_with_rules_verifies() -> None:
    """A call that asked has not ended, so rules do not count it, neither when it runs nor when the log is verified."""
    shop = Shop({"place": form("Where to?")})
    with connections_to(shop.server()) as made:
        tools = list(functions(ENTRY, made, "shop").values())
        model = ScriptedModel([[call("shop__ship", item="tea"), call("conversation_search", query="tea")], "Done."])
        with system(model, tools=tools) as agents:
            rules = [everlog.FunctionRule("children", "shop__ship", ["send_message"])]
            sam = agents.agent("sam", everlog.Settings(rules=rules))
            sam.ask("Ship tea")
            sam.approve(requests(agents)[0][0], arguments=answered(place=OSLO)).reply()
            agents.assert_verified("sam")
