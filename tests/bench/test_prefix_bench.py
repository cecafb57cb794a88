"""The share of a request that repeats: the arithmetic of `bench.gateway`, by hand."""

import asyncio

import pytest

from bench import prefixes

TOOLS = b',"tools":[{"x":1}],"tool_choice":"auto"}'


def request(*messages: bytes, tools: bytes = TOOLS) -> bytes:
    return b'{"model":"m","messages":[' + b",".join(messages) + b"]" + tools


def test_functions_come_first_and_messages_in_order() -> None:
    """A request that the next one only adds to comes again whole; after the first byte that differs nothing does."""
    first, added = request(b'{"a":1}'), request(b'{"a":1}', b'{"b":2}')
    assert prefixes.compared("", [first, added]).stability == 1.0
    changed = request(b'{"a":2}', b'{"b":2}')
    same = len(TOOLS) + len(b'{"model":"m","messages":[{"a":')
    assert prefixes.compared("", [first, changed]).by_step == [pytest.approx(same / (len(first) - 1))]


def test_other_functions_leave_nothing_and_a_summary_is_not_compared() -> None:
    """Functions come before everything else; what stands on the two sides of a summary is no pair."""
    first, other = request(b'{"a":1}'), request(b'{"a":1}', tools=TOOLS.replace(b"1", b"2"))
    assert prefixes.compared("", [first, other]).by_step == [0.0]
    summary = b'{"model":"m","messages":[]}'
    found = prefixes.compared("", [first, first, summary, first, first])
    assert found.by_step == [1.0, 1.0] and found.summaries == 1


def test_a_conversation_keeps_its_beginning() -> None:
    """Without edits of memory a real agent's next request begins with all of the one before."""
    found = asyncio.run(prefixes.talk(12, data="no such folder", window=60_000))
    assert sum(share == 1.0 for share in found.by_step) >= len(found.by_step) - found.edits
    assert found.steps >= 12 and found.source == "everyday words"
