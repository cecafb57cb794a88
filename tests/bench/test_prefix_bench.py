"""The share of a request that repeats the previous request: the arithmetic of `bench.gateway`, checked by hand."""

import asyncio

import pytest

from bench import prefixes

TOOLS = b',"tools":[{"x":1}],"tool_choice":"auto"}'


def request(*messages: bytes, tools: bytes = TOOLS) -> bytes:
    return b'{"model":"m","messages":[' + b",".join(messages) + b"]" + tools


def test_functions_come_first_and_messages_in_order() -> None:
    """A request that is only extended repeats completely; after the first different byte nothing counts as repeated."""
    first, added = request(b'{"a":1}'), request(b'{"a":1}', b'{"b":2}')
    assert prefixes.compared("", [first, added]).stability == 1.0
    changed = request(b'{"a":2}', b'{"b":2}')
    same = len(TOOLS) + len(b'{"model":"m","messages":[{"a":')
    assert prefixes.compared("", [first, changed]).by_step == [pytest.approx(same / (len(first) - 1))]


def test_other_functions_leave_nothing_and_a_summary_is_not_compared() -> None:
    """Functions come first in a request, so other functions leave no common prefix; the requests before and after a
    summary are not compared.
    """
    first, other = request(b'{"a":1}'), request(b'{"a":1}', tools=TOOLS.replace(b"1", b"2"))
    assert prefixes.compared("", [first, other]).by_step == [0.0]
    summary = b'{"model":"m","messages":[]}'
    found = prefixes.compared("", [first, first, summary, first, first])
    assert found.by_step == [1.0, 1.0] and found.summaries == 1


def test_a_conversation_keeps_its_beginning() -> None:
    """Without edits of memory, the next request of a real agent begins with the whole previous request."""
    found = asyncio.run(prefixes.talk(12, data="no such folder", window=60_000))
    assert sum(share == 1.0 for share in found.by_step) >= len(found.by_step) - found.edits
    assert found.steps >= 12 and found.source == "everyday words"
