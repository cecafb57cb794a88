"""Calls that wait for a person's approval: nothing runs before it, everything survives the wait, one decision holds."""

import json
from collections.abc import Sequence
from datetime import timedelta

import pytest

import everlog
from everlog.events import AlreadyDecided, ApprovalDecided, ApprovalRequested, ApprovalRule, FunctionResult, event_of
from everlog.interfaces.testing.scripted_system import SyncScriptedSystem
from everlog.testing import ScriptedModel, call, system

WEEK = timedelta(days=7)


class Shop:
    """A shop outside the log, which counts its orders."""

    def __init__(self) -> None:
        self.orders: list[str] = []

    @property
    def tools(self) -> Sequence[everlog.Tool]:
        @everlog.tool(approval=True)
        def order(item: str, pieces: int = 1) -> str:
            """Order something.

            Args:
                item: The thing.
                pieces: How many.
            """
            self.orders.append(f"{pieces} {item}")
            return f"ordered {pieces} {item}"

        @everlog.tool(effect="read_only")
        def price(item: str) -> str:
            """Look up a price.

            Args:
                item: The thing.
            """
            return f"{item}: 3"

        return [order, price]


@pytest.fixture
def shop() -> Shop:
    return Shop()


def kinds_of(agents: SyncScriptedSystem, from_seq: int = 8) -> list[str]:
    return [record.type for record in agents.log("sam")[from_seq - 1 :]]


def request_of(agents: SyncScriptedSystem) -> int:
    """Return the seq of the newest request."""
    return max(record.seq for record in agents.log("sam") if record.type == "approval_requested")


def events(agents: SyncScriptedSystem, kind: type) -> list:
    return [event for event in map(event_of, agents.log("sam")) if isinstance(event, kind)]


def test_a_call_that_needs_approval_runs_only_after_it(shop: Shop) -> None:
    """The call waits, the turn ends, other messages are answered; after the approval it runs once, and the model
    answers with its result in view.
    """
    model = ScriptedModel([call("order", item="tea"), "It waits.", "Tea is ordered."])
    with system(model, tools=shop.tools) as agents:
        sam = agents.agent("sam")
        assert sam.ask("Order tea").text == ""
        assert sam.ask("Hello?").text == "It waits."
        assert shop.orders == []
        assert sam.approve(request_of(agents)).reply().text == "Tea is ordered."
        assert shop.orders == ["1 tea"]
        seen = [json.loads(m["content"]) for m in model.last.messages if m["role"] == "user"]
        assert [one["type"] for one in seen[-2:]] == ["approval", "function_result"]
        assert (seen[-1]["name"], seen[-1]["status"], seen[-1]["message"]) == ("order", "OK", "ordered 1 tea")
        assert kinds_of(agents) == [
            "user_message", "model_reply", "approval_requested", "function_result",
            "user_message", "model_reply", "message_sent", "function_result",
            "approval_decided", "function_started", "function_result", "model_reply", "message_sent", "function_result",
        ]  # fmt: skip
        agents.assert_verified("sam")


def test_a_person_may_change_the_arguments(shop: Shop) -> None:
    """The call runs with the arguments of the person; the log has both, and the model is told."""
    model = ScriptedModel([call("order", item="tea", pieces=99), "Two, then."])
    with system(model, tools=shop.tools) as agents:
        sam = agents.agent("sam")
        sam.ask("Order tea")
        sam.approve(request_of(agents), arguments={"item": "tea", "pieces": 2}, reason="Too many.").reply()
        assert shop.orders == ["2 tea"]
        (asked,), (decided,) = events(agents, ApprovalRequested), events(agents, ApprovalDecided)
        assert json.loads(asked.arguments)["pieces"] == 99
        assert (decided.edited, json.loads(decided.arguments)) == (True, {"item": "tea", "pieces": 2})
        said = [json.loads(m["content"]).get("message", "") for m in model.last.messages if m["role"] == "user"][-2]
        assert '"pieces":2' in said
        assert said.endswith("Reason: Too many.")
        agents.assert_verified("sam")


def test_a_refused_call_never_runs(shop: Shop) -> None:
    """The model gets the reason and answers; nothing else happens."""
    with system(ScriptedModel([call("order", item="tea"), "No tea."]), tools=shop.tools) as agents:
        sam = agents.agent("sam")
        sam.ask("Order tea")
        assert sam.refuse(request_of(agents), "We have tea.").reply().text == "No tea."
        assert shop.orders == []
        agents.assert_verified("sam")


def test_a_call_that_no_person_decides_is_refused_in_time(shop: Shop) -> None:
    """After a week, by default, the call counts as refused, also if the agent was unloaded meanwhile."""
    with system(ScriptedModel([call("order", item="tea"), "Too late."]), tools=shop.tools, idle_s=60) as agents:
        sam = agents.agent("sam")
        sam.ask("Order tea")
        agents.advance(WEEK - timedelta(seconds=10))
        assert not events(agents, ApprovalDecided)
        agents.advance(timedelta(seconds=20))
        (decided,) = events(agents, ApprovalDecided)
        assert (decided.decision, shop.orders) == ("expired", [])
        assert kinds_of(agents)[-1] == "function_result"
        with pytest.raises(AlreadyDecided, match="was expired at"):
            sam.approve(request_of(agents)).reply()
        agents.assert_verified("sam")


def test_only_the_first_decision_holds(shop: Shop) -> None:
    """A second decision is an error that says what was decided, and changes nothing; the same command again is not."""
    with system(ScriptedModel([call("order", item="tea"), "Done."]), tools=shop.tools) as agents:
        sam = agents.agent("sam")
        sam.ask("Order tea")
        request = request_of(agents)
        sam.approve(request).reply()
        before = agents.log("sam")
        for decide in (sam.approve, sam.refuse):
            with pytest.raises(AlreadyDecided, match=f"seq {request}\\) was approved at"):
                decide(request).reply()
        assert (agents.log("sam"), shop.orders) == (before, ["1 tea"])


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"request": 3}, "No call of 'sam' asked for an approval at seq 3"),
        ({"request": 999}, "No call of 'sam' asked for an approval at seq 999"),
        ({"arguments": {"thing": "tea"}}, "order has no parameter thing"),
        ({"arguments": {"item": "tea", "pieces": "many"}}, "wrong arguments for order"),
    ],
)
def test_a_wrong_decision_decides_nothing(shop: Shop, given: dict, words: str) -> None:
    """The error says what is wrong, and the call still waits."""
    with system(ScriptedModel([call("order", item="tea"), "Done."]), tools=shop.tools) as agents:
        sam = agents.agent("sam")
        sam.ask("Order tea")
        request = request_of(agents)
        with pytest.raises(everlog.BadInput, match=words):
            sam.approve(**{"request": request, **given}).reply()
        assert not events(agents, ApprovalDecided)
        sam.approve(request).reply()
        assert shop.orders == ["1 tea"]


def test_always_changes_the_rules_of_this_agent(shop: Shop) -> None:
    """After `always`, the function runs without a question; the commit of the decision holds the new configuration."""
    model = ScriptedModel([call("order", item="tea"), "Done.", call("order", item="milk"), "And milk."])
    with system(model, tools=shop.tools) as agents:
        sam = agents.agent("sam")
        sam.ask("Order tea")
        sam.approve(request_of(agents), always=True).reply()
        assert sam.ask("And milk").text == "And milk."
        assert shop.orders == ["1 tea", "1 milk"]
        log = agents.log("sam")
        decided = next(record for record in log if record.type == "approval_decided")
        configured = [record for record in log if record.type == "agent_configured"][-1]
        assert configured.commit == decided.commit
        assert event_of(configured).approvals == [ApprovalRule("order", "allow")]
        agents.assert_verified("sam")


def test_rules_decide_by_function_and_argument(shop: Shop) -> None:
    """The last rule that fits decides: ask, allow or refuse, by patterns of the name and of arguments."""
    rules = [
        ApprovalRule("*", "allow"),
        ApprovalRule("pri*", "ask"),
        ApprovalRule("order", "refuse", {"item": "*gun*"}),
    ]
    model = ScriptedModel(
        [call("order", item="tea"), "Tea.", call("order", item="a gun"), "No gun.", call("price", item="x")]
    )
    with system(model, tools=shop.tools) as agents:
        sam = agents.agent("sam", everlog.Settings(approvals=rules))
        sam.ask("Tea")
        sam.ask("A gun")
        assert shop.orders == ["1 tea"]
        assert [e.text for e in events(agents, FunctionResult) if not e.ok] == [
            "The rules of this agent do not allow this call."
        ]
        sam.ask("The price")
        assert [event.name for event in events(agents, ApprovalRequested)] == ["price"]
        agents.assert_verified("sam")


def test_no_later_call_of_the_reply_overtakes_one_that_waits(shop: Shop) -> None:
    """After a call that waits, only messages to the user run; other calls say that they did not run."""
    calls = [call("order", item="tea"), call("price", item="tea"), call("send_message", message="I asked.")]
    with system(ScriptedModel([calls]), tools=shop.tools) as agents:
        assert agents.agent("sam").ask("Tea").text == "I asked."
        results = {event.name: event for event in events(agents, FunctionResult)[1:]}
        assert results["price"].text.startswith("Not run, because an earlier call")
        assert (results["order"].ok, results["price"].ok, results["send_message"].ok) == (True, False, True)
        agents.assert_verified("sam")


def test_a_call_of_a_turn_that_was_taken_back_waits_no_more(shop: Shop) -> None:
    """To take a turn back withdraws its call."""
    with system(ScriptedModel([call("order", item="tea")]), tools=shop.tools) as agents:
        sam = agents.agent("sam")
        sam.ask("Order tea")
        sam.undo_turns()
        with pytest.raises(AlreadyDecided, match="was withdrawn at"):
            sam.approve(request_of(agents)).reply()


def test_a_function_of_memory_can_wait_too(shop: Shop) -> None:
    """A rule may ask for edits of memory: the edit is made by the approved call, and by nothing before."""
    edit = call("core_memory_append", name="human", content="Likes tea.")
    settings = everlog.Settings(approvals=[ApprovalRule("core_memory_*")])
    with system(ScriptedModel([edit, "Noted."])) as agents:
        sam = agents.agent("sam", settings)
        sam.ask("I like tea")
        assert "Likes tea." not in str(events(agents, everlog.MemoryEdited))
        sam.approve(request_of(agents)).reply()
        edited = events(agents, everlog.MemoryEdited)[-1]
        assert edited.text.endswith("Likes tea.")
        agents.assert_verified("sam")
