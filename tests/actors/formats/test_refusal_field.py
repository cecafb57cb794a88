"""Replies whose `refusal` field holds the model's refusal to answer."""

import json

import pytest

from everlog.actors.formats import parse_reply
from everlog.events import BadReply


def refusing(content: str | None) -> str:
    message = {"role": "assistant", "content": content, "refusal": "I cannot help with that."}
    return json.dumps({"choices": [{"message": message, "finish_reason": "stop"}]})


def test_a_refusal_without_content_is_a_failure() -> None:
    """A refusal without content is a failure of kind content filter, with the model's own words."""
    with pytest.raises(BadReply, match="I cannot help with that") as caught:
        parse_reply.reply(refusing(None), 8192)
    assert caught.value.kind == "filtered"


def test_content_next_to_a_refusal_is_read() -> None:
    """If a reply has content and a refusal, the content is read as in any reply."""
    assert parse_reply.reply(refusing("Let us talk of boats."), 8192).text == "Let us talk of boats."
