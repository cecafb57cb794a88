"""Rules about functions: each kind does what it says, in every way of calling, and wrong rule sets are refused."""

import json
from collections.abc import Sequence

import pytest

import everlog
from everlog.actors.rules.rule_checks import rule_of, rule_text
from everlog.events import BadInput, FunctionResult, FunctionRule, Heartbeat, RulesApplied, TurnAbandoned, event_of
from everlog.interfaces.testing.scripted_system import SyncScriptedSystem
from everlog.testing import ScriptedCall, ScriptedModel, call, system


@everlog.tool(effect="read_only")
def search(words: str) -> str:
    """Search.

    Args:
        words: What for.
    """
    return f"found {words}"


@everlog.tool(effect="idempotent")
def check(answer: str) -> str:
    """Check something.

    Args:
        answer: The result.
    """
    return answer


@everlog.tool(effect="at_most_once")
def pay(pieces: int = 1) -> str:
    """Pay.

    Args:
        pieces: How many.
    """
    return f"paid {pieces}"


@everlog.tool
def note(words: str) -> str:
    """Note something.

    Args:
        words: What.
    """
    return "noted"


TOOLS = (search, check, pay, note)


def quiet(name: str, **arguments: object) -> ScriptedCall:
    """Return a call that asks for no heartbeat."""
    return call(name, **arguments, request_heartbeat=False)


def settings(*rules: str | FunctionRule, **more: object) -> everlog.Settings:
    return everlog.Settings(rules=[rule_of(rule) if isinstance(rule, str) else rule for rule in rules], **more)


def events(agents: SyncScriptedSystem, kind: type) -> list:
    return [event for event in map(event_of, agents.log("sam")) if isinstance(event, kind)]


def ran(agents: SyncScriptedSystem) -> list[str]:
    """Return the functions that ran after the recorded start-up, in order."""
    return [result.name for result in events(agents, FunctionResult)[1:] if result.ok]


def refusals(agents: SyncScriptedSystem) -> Sequence[str]:
    return [result.text for result in events(agents, FunctionResult) if not result.ok]


def test_a_turn_begins_with_a_function_of_an_init_rule() -> None:
    """Any other call is refused in words and the model tries again; arguments of the rule replace the model's."""
    rule = FunctionRule("init", "search", arguments={"search": '{"words":"tea"}'})
    model = ScriptedModel(["Hello.", call("search", words="milk"), "Found."])
    with system(model, tools=TOOLS) as agents:
        assert agents.agent("sam", settings(rule)).ask("Hi").text == "Found."
        assert [list(seen.functions) for seen in model.seen[:2]] == [["search"], ["search"]]
        assert len(model.last.functions) > 5
        assert refusals(agents) == [
            "The rules of this agent do not allow a call of send_message here. Allowed now: search."
        ]
        assert [r.text for r in events(agents, FunctionResult) if r.name == "search"] == ["found tea"]
        agents.assert_verified("sam")


def test_only_the_children_follow_a_function() -> None:
    """The turn continues by itself, and the model is offered the children alone; then everything again."""
    model = ScriptedModel([quiet("search", words="tea"), [quiet("note", words="x"), "Early."], "Noted."])
    with system(model, tools=TOOLS) as agents:
        assert agents.agent("sam", settings("children search note")).ask("Hi").text == "Early."
        assert list(model.seen[1].functions) == ["note"]
        assert ran(agents) == ["search", "note", "send_message"]
        (beat,) = [event for event in events(agents, Heartbeat) if event.reason == "rules"]
        assert beat.text.endswith("A rule of this agent continues the turn. Allowed now: note.")
        agents.assert_verified("sam")


def test_a_child_of_a_parent_rule_is_called_only_right_after_it() -> None:
    """Before the parent, and later than right after it, the call is refused; right after it nothing else is allowed."""
    model = ScriptedModel([quiet("pay"), call("check", answer="x"), call("pay"), quiet("pay"), "Done."])
    with system(model, tools=TOOLS) as agents:
        assert agents.agent("sam", settings("parent check pay")).ask("Hi").text == "Done."
        assert ran(agents) == ["check", "pay", "send_message"]
        assert len(refusals(agents)) == 2
        assert ["pay" in seen.functions for seen in model.seen] == [False, False, True, False, False]
        assert list(model.seen[2].functions) == ["pay"]
        agents.assert_verified("sam")


@pytest.mark.parametrize(
    ("answer", "rule", "allowed"),
    [
        ("yes", "conditional check yes=pay no=send_message", ["pay"]),
        ("no", "conditional check yes=pay no=send_message", ["send_message"]),
        ("TRUE", "conditional check true=pay *=note", ["pay"]),
        ("3.0", "conditional check 3=pay *=note", ["pay"]),
        ("perhaps", "conditional check yes=pay *=note", ["note"]),
    ],
)
def test_a_result_decides_which_function_follows(answer: str, rule: str, allowed: list[str]) -> None:
    """The result is compared as text, number or truth value; any other result has the default."""
    follower = {"pay": quiet("pay"), "note": quiet("note", words="x"), "send_message": "So."}[allowed[0]]
    model = ScriptedModel([quiet("check", answer=answer), follower])
    with system(model, tools=TOOLS) as agents:
        agents.agent("sam", settings(rule)).ask("Hi")
        assert list(model.last.functions) == allowed
        assert ran(agents) == ["check", *allowed]
        agents.assert_verified("sam")


@pytest.mark.parametrize("answer", ["9" * 400, "[" * 3000, "1e999", "x" * 10_000], ids=["long", "deep", "huge", "text"])
def test_any_result_can_be_compared(answer: str) -> None:
    """A number that no float holds, or JSON that is too deep to read, is another result, and the turn continues."""
    model = ScriptedModel([quiet("check", answer=answer), quiet("note", words="x")])
    with system(model, tools=TOOLS) as agents:
        agents.agent("sam", settings("conditional check 3=pay *=note")).ask("Hi")
        assert ran(agents) == ["check", "note"]
        agents.assert_verified("sam")


def test_another_result_ends_the_turn_of_a_strict_rule() -> None:
    """Nothing may be called, so the turn is stopped in words, and the agent answers the next message."""
    model = ScriptedModel([quiet("check", answer="perhaps"), "Next."])
    with system(model, tools=TOOLS) as agents:
        sam = agents.agent("sam", settings("conditional check yes=pay strict"))
        assert sam.ask("Hi").text == ""
        (stopped,) = events(agents, TurnAbandoned)
        assert (stopped.reason, "no function that may be called" in stopped.text) == ("rules", True)
        assert sam.ask("And now?").text == "Next."
        agents.assert_verified("sam")


def test_a_function_is_called_at_most_as_often_as_its_rule_says() -> None:
    """The count is of one turn, over all its steps and replies, also when a summary hides its first steps."""
    model = ScriptedModel([
        [quiet("pay"), quiet("pay"), quiet("pay")], quiet("pay"), "Paid.", [call("pay"), "Again."], "And so.",
    ])  # fmt: skip
    with system(model, tools=TOOLS) as agents:
        sam = agents.agent("sam", settings("max_count pay 2"))
        assert sam.ask("Pay").text == "Paid."
        assert ran(agents).count("pay") == 2
        assert "pay" not in model.last.functions
        sam.ask("Pay again")
        assert ran(agents).count("pay") == 3
        agents.assert_verified("sam")


def test_a_turn_continues_after_a_function_of_a_continue_rule() -> None:
    """No heartbeat of the model is needed."""
    model = ScriptedModel([quiet("note", words="x"), "Done."])
    with system(model, tools=TOOLS) as agents:
        assert agents.agent("sam", settings("continue note")).ask("Hi").text == "Done."
        agents.assert_verified("sam")


def test_a_turn_ends_with_a_function_of_a_terminal_rule() -> None:
    """A heartbeat that the model requested is not followed, and the later calls of the reply are not made."""
    model = ScriptedModel([[call("pay"), quiet("note", words="x")], "Next."])
    with system(model, tools=TOOLS) as agents:
        sam = agents.agent("sam", settings("terminal pay"))
        sam.ask("Pay")
        assert (ran(agents), refusals(agents)) == (["pay"], ["Not run: the turn ends with the call of pay."])
        assert not [event for event in events(agents, Heartbeat) if event.reason != "manual"]
        assert sam.ask("Hello").text == "Next."
        agents.assert_verified("sam")


def test_a_turn_does_not_end_before_a_required_function_was_called() -> None:
    """The model is told which one is missing, also after a terminal function; the number of steps is limited."""
    model = ScriptedModel(["Hello.", quiet("pay"), quiet("note", words="x")], after="Still here.")
    with system(model, tools=TOOLS) as agents:
        sam = agents.agent("sam", settings("required note", "terminal pay", steps_max=5))
        sam.ask("Hi")
        assert ran(agents) == ["send_message", "pay", "note"]
        beats = [event.text for event in events(agents, Heartbeat) if event.reason == "rules"]
        assert [text.rpartition("] ")[2] for text in beats] == [
            "A rule of this agent continues the turn. Still to be called before it ends: note."
        ] * 2
        sam.ask("Again")
        assert [event.reason for event in events(agents, TurnAbandoned)] == ["steps_max"]
        agents.assert_verified("sam")


def test_a_call_that_waits_for_approval_ends_its_turn_and_begins_the_next_one() -> None:
    """A required function does not hold the turn while a call waits. The approved call counts in its own turn: the
    rules about what follows it apply there, and those about how a turn begins do not.
    """
    rules = ("init search", "children pay note", "required note")
    model = ScriptedModel([call("search", words="x"), quiet("pay"), quiet("note", words="x")])
    with system(model, tools=TOOLS) as agents:
        sam = agents.agent("sam", settings(*rules, approvals=[everlog.ApprovalRule("pay")]))
        sam.ask("Pay")
        (request,) = [record.seq for record in agents.log("sam") if record.type == "approval_requested"]
        assert len(model.seen) == 2
        sam.approve(request).reply()
        assert ran(agents)[-2:] == ["pay", "note"]
        assert list(model.last.functions) == ["note"]
        assert not model.lines
        agents.assert_verified("sam")


def test_a_call_that_waits_counts_against_its_limit() -> None:
    """The model cannot ask twice for what it may do once."""
    model = ScriptedModel([[quiet("pay"), quiet("pay")], "It waits."])
    with system(model, tools=TOOLS) as agents:
        sam = agents.agent("sam", settings("max_count pay 1", approvals=[everlog.ApprovalRule("pay")]))
        sam.ask("Pay")
        assert [record.type for record in agents.log("sam")].count("approval_requested") == 1
        assert len(refusals(agents)) == 1
        agents.assert_verified("sam")


def test_an_agent_without_rules_records_no_state_of_them() -> None:
    """Nothing is added to the log of an agent that has no rules."""
    with system(ScriptedModel([call("note", words="x"), "Done."]), tools=TOOLS) as agents:
        agents.agent("sam").ask("Hi")
        assert not events(agents, RulesApplied)


@pytest.mark.parametrize("calling", ["native", "schema", "text"])
def test_every_calling_format_offers_only_functions_that_may_be_called(calling: str) -> None:
    """The request describes the allowed functions and no others."""
    with system(ScriptedModel([]), tools=TOOLS) as agents:
        agents.agent("sam", settings("init search", calling=calling))
        with agents.view("sam") as view:
            request = json.dumps(json.loads(view.request()))
        assert "What for." in request
        assert "How many." not in request


@pytest.mark.parametrize(
    ("rules", "words"),
    [
        (["init fly"], "names 'fly', which is no function of this agent"),
        (["children search fly"], "names 'fly'"),
        (["conditional check yes=fly"], "names 'fly'"),
        (["terminal pay", "continue pay"], "a turn ends with pay, and that it continues"),
        (["terminal pay", "children pay note"], "a turn ends with pay, and that it continues"),
        (["max_count pay 1", "max_count pay 2"], "There are 2 rules `max_count pay`"),
        (["children search pay", "parent note pay"], "no function may be called after search"),
        (["init search", "children search search", "required pay"], "pay is required, and the rules never allow it"),
        ([FunctionRule("max_count", "pay")], "needs a number of calls from 1"),
        ([FunctionRule("children", "pay")], "names no function that follows"),
        ([FunctionRule("conditional", "pay", default="note")], "names no result"),
        ([FunctionRule("terminal", "pay", limit=3)], "cannot have `limit`"),
        ([FunctionRule("init", "pay", arguments={"note": "{}"})], "has arguments for 'note'"),
        ([FunctionRule("init", "pay", arguments={"pay": "[1]"})], "has arguments for 'pay'"),
        ([FunctionRule("init", "pay", arguments={"pay": '{"a":' * 1500})], "has arguments for 'pay'"),
        (["required note"] * 101, "at most 100 rules"),
    ],
)
def test_a_wrong_rule_set_is_refused_and_changes_nothing(rules: list[str | FunctionRule], words: str) -> None:
    """The error names the rule and what is wrong with it."""
    with system(ScriptedModel(["Hello."]), tools=TOOLS) as agents:
        sam = agents.agent("sam")
        before = agents.log("sam")
        with pytest.raises(BadInput, match=words):
            sam.configure(settings(*rules))
        assert agents.log("sam") == before


def test_a_verified_first_message_and_its_rules_must_agree() -> None:
    """The check of the first message demands send_message; rules that forbid it are refused at once."""
    with (
        system(ScriptedModel([]), tools=TOOLS) as agents,
        pytest.raises(BadInput, match="The first message is verified: it calls send_message"),
    ):
        agents.agent("sam", settings("init pay", verify_first=True))


@pytest.mark.parametrize(
    "text",
    [
        "init search", "continue note", "terminal pay", "required note", "children search note,pay", "parent check pay",
        "max_count pay 2", "conditional check yes=pay no=note *=send_message", "conditional check yes=pay strict",
    ],
)  # fmt: skip
def test_a_rule_is_read_as_it_is_written(text: str) -> None:
    """Text and rule are each other's inverse."""
    assert rule_text(rule_of(text)) == text


@pytest.mark.parametrize(
    "text",
    ["", "init", "fly pay", "max_count pay", "max_count pay x", "children pay", "conditional pay yes", "init a b"],
)
def test_a_text_that_is_no_rule_is_refused(text: str) -> None:
    """The error shows the forms of rules."""
    with pytest.raises(BadInput, match="A rule about functions is `init F`"):
        rule_of(text)
