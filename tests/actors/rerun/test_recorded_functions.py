"""Results of function calls in a rerun: recorded, live or refused."""

import json

import pytest

from everlog.actors.functions.tools import tool
from everlog.actors.rerun.recorded_functions import REFUSED, schema_only_tool
from everlog.actors.rerun.recorded_past import RecordedResults, canonical, key_of
from everlog.events import FunctionResult, UsageError
from tests.support.agent_world import completion, say
from tests.support.agents.rerun_world import BIRTH, Outside, again, lived, pays, results


def test_a_recorded_call_gets_its_recorded_result_and_no_effect():
    """Each occurrence of a call gets its own recorded result, in order, and the function does not run."""
    outside = Outside()
    world = lived(pays("ann"), pays("ann"), say("Done."), tools=(outside.tool,))
    done = again(world, pays("ann"), pays("ann"), say("Well."), tools=(outside.tool,))
    assert results(done) == [("paid ann 1, receipt 1", "recorded"), ("paid ann 1, receipt 2", "recorded")]
    assert outside.paid == ["ann", "ann"]


def test_argument_order_and_defaults_do_not_distinguish_calls():
    """Calls are compared by the parameters that the function would get, not by the model's text."""
    outside = Outside()
    world = lived(pays("ann", sum=1), say("Done."), tools=(outside.tool,))
    done = again(world, completion(calls=[("pay", '{"to":"ann"}')]), tools=(outside.tool,))
    assert results(done) == [("paid ann 1, receipt 1", "recorded")]


@pytest.mark.parametrize("given", [True, False])
def test_a_call_without_a_recorded_result_is_refused(given: bool):
    """A call with other arguments, or one more than recorded, is refused, whether the function is given or not."""
    outside = Outside()
    world = lived(pays("ann"), say("Done."), tools=(outside.tool,))
    tools = (outside.tool,) if given else ()
    done = again(world, pays("bob"), pays("ann"), pays("ann"), say("Well."), tools=tools)
    refused = (f"Error calling function pay: {REFUSED}", "refused")
    assert results(done) == [refused, ("paid ann 1, receipt 1", "recorded"), refused]
    assert outside.paid == ["ann"]
    assert done.comparison.answered == {"own": 0, "recorded": 1, "ran": 0, "refused": 2}
    assert refused[0] in str(world.model.messages())  # the model gets the error


def test_live_tools_run_for_new_calls():
    """With `live_tools`, a recorded call gets its recorded result, and only new calls run."""
    outside = Outside()
    world = lived(pays("ann"), say("Done."), tools=(outside.tool,))
    done = again(world, pays("ann"), pays("bob"), say("Well."), tools=(outside.tool,), live_tools=True)
    assert results(done) == [("paid ann 1, receipt 1", "recorded"), ("paid bob 1, receipt 2", "ran")]
    assert outside.paid == ["ann", "bob"]


def test_new_calls_of_read_only_functions_run():
    """A new call of a read_only function is run if the function is given, and refused otherwise."""
    outside = Outside("read_only")
    world = lived(pays("ann"), say("Done."), tools=(outside.tool,))
    done = again(world, pays("bob"), say("Well."), tools=(outside.tool,))
    assert results(done) == [("paid bob 1, receipt 2", "ran")]
    done = again(world, pays("bob"), say("Well."), fork="ann")
    assert [how for _, how in results(done)] == ["refused"]


def test_a_recorded_failure_is_a_failure_again():
    """A recorded failed result is returned as a failure."""

    @tool
    def knock() -> str:
        """Knock."""
        raise OSError("nobody there")

    world = lived(completion(calls=[("knock", {})]), tools=(knock,))
    done = again(world, completion(calls=[("knock", {})]))
    assert results(done) == [("Error calling function knock: OSError: nobody there", "recorded")]
    assert done.comparison.diverged is None


def test_a_function_that_edits_memory_must_be_given():
    """A function that edits memory must run in the fork, so its absence is an error before a fork is made."""
    from everlog.actors.memory.core_memory import Memory

    @tool
    def note(memory: Memory, word: str) -> None:
        """Note a word.

        Args:
            word: The word.
        """
        memory.append("human", word)

    world = lived(completion(calls=[("note", {"word": "tea"})]), tools=(note,))
    with pytest.raises(UsageError, match=r"note.*--tools"):
        again(world)
    assert world.system.agents() == ["sam"]
    done = again(world, completion(calls=[("note", {"word": "rum"})]), tools=(note,))
    assert done.comparison.turns[0].differs == ["calls", "memory"]


def test_memory_functions_run_on_the_fork():
    """Memory functions edit the fork's own memory; the parent does not change."""
    keep = completion(calls=[("archival_memory_insert", {"content": "Rex is a dog", "request_heartbeat": True})])
    find = completion(calls=[("archival_memory_search", {"query": "Rex", "request_heartbeat": True})])
    world = lived(say("Hello."))
    log = world.log()
    done = again(world, keep, find, say("A dog."))
    assert "Rex is a dog" in results(done)[1][0]
    assert [how for _, how in results(done)] == ["own", "own"]
    assert world.log() == log


def test_unchanged_functions_change_no_configuration():
    """The recorded functions leave the configuration unchanged; a further function is added to it."""
    outside = Outside()
    world = lived(pays("ann"), tools=(outside.tool,))
    again(world, tools=(outside.tool,))
    assert "agent_configured" not in world.kinds("tom")[BIRTH:]

    @tool
    def knock() -> str:
        """Knock."""
        return "who is there"

    again(world, fork="ann", tools=(outside.tool, knock))
    names = [function.name for function in world.system.view("ann").context().config.functions]
    assert {"pay", "knock"} <= set(names)


def test_each_recorded_result_is_taken_once():
    """Each recorded result is taken once, by a call with the same key; an unknown key gets none."""
    results = RecordedResults()
    for text in ("first", "second"):
        results.add(("pay", canonical({"to": "ann"})), FunctionResult(text=text, call_id="1", name="pay"))
    taken = [results.take(key_of(None, "pay", text)) for text in ('{"to": "bob"}', '{"to":"ann"}', '{"to": "ann"}')]
    assert [None if one is None else one.text for one in taken] == [None, "first", "second"]
    assert results.take(("pay", canonical({"to": "ann"}))) is None


def test_a_stand_in_has_the_schema_and_the_defaults_of_the_function():
    """A function that is rebuilt from its schema has the same hash and the same keys for its calls."""
    outside = Outside()
    made = schema_only_tool(outside.tool.schema, "at_most_once")
    assert made.sha256 == outside.tool.sha256
    assert key_of(made, "pay", '{"to":"ann"}') == key_of(outside.tool, "pay", '{"sum": 1, "to": "ann"}')


def test_a_stand_in_of_a_function_of_a_server_takes_any_names_and_defaults():
    """Parameters of a server's function may have names and defaults that no Python function has."""
    properties = {"max-results": {"type": "integer"}, "tags": {"default": ["a"]}, "request_heartbeat": {}}
    schema = json.dumps({"name": "web__find", "parameters": {"type": "object", "properties": properties}})
    made = schema_only_tool(schema, "read_only")
    assert key_of(made, "web__find", '{"max-results": 3}') == ("web__find", canonical({"max-results": 3}))
