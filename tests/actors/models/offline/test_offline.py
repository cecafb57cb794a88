"""The offline stand-in, from request bytes to answer bytes; nothing of it needs a key, a network or a clock."""

import asyncio
import json

import pytest

from everlog.actors.agent import decide
from everlog.actors.formats.reading import CALL_ID_CHARS_MAX
from everlog.actors.models.offline import MODEL, Offline, reply
from everlog.events import ModelError
from tests.support.models.offline_chat import AT, BLOCK, alert, beat, calls, names, request, said, typed, user


def test_the_same_request_has_the_same_answer() -> None:
    """The answer is a function of the bytes: no clock, no chance."""
    body = request(user("Hi there"))
    assert reply(body) == reply(body)
    assert reply(body) != reply(request(user("Hi you")))


def test_the_answer_is_a_chat_completion() -> None:
    """Ids come from the request, usage counts a quarter of its bytes, and the model says what it is."""
    body = request(user("my name is Chad and I sail"))
    answer = json.loads(reply(body))
    ids = [call["id"] for call in answer["choices"][0]["message"]["tool_calls"]]
    assert answer["created"] == 0
    assert answer["model"] == MODEL
    assert answer["choices"][0]["finish_reason"] == "tool_calls"
    assert len(set(ids)) == len(ids)
    assert all(len(call_id) <= CALL_ID_CHARS_MAX for call_id in ids)
    usage = answer["usage"]
    assert usage["prompt_tokens"] == -(-len(body) // 4)
    assert usage["total_tokens"] == usage["prompt_tokens"] + usage["completion_tokens"]


def test_offline_is_a_model() -> None:
    """`ask` gives the pure reply with its latency, and closing twice is fine."""
    model = Offline()
    body = request(user("hi"))
    answer = asyncio.run(model.ask(body))
    asyncio.run(model.close())
    asyncio.run(model.close())
    assert model.name == "offline"
    assert answer.raw.encode() == reply(body)
    assert answer.latency_us >= 0


def test_what_is_no_request_is_a_model_error() -> None:
    """Bytes that are no request are refused with the one error that a model may raise."""
    for body in (b"", b"{", b"[]", b'{"messages": 3}', b"\xff"):
        with pytest.raises(ModelError, match="no chat-completions request"):
            reply(body)


FIRST = ["hi", "my name is Chad and I sail", "What is the capital of France?", "what did we say on 2023-05-08?", "",
         "keep this: the tide turns at six", "forget that I sail"]  # fmt: skip


@pytest.mark.parametrize("text", FIRST)
def test_the_first_reply_passes_the_check_of_first_messages(text: str) -> None:
    """Whatever comes first, the first reply speaks or searches the archive, and its monologue is clean."""
    first = typed(request(user(text), fresh=True))
    assert decide.first_message_fault(first) is None


def test_every_first_event_passes_the_check_of_first_messages() -> None:
    """A login, an alert or a heartbeat may come first as well."""
    login = {"role": "user", "content": json.dumps({"type": "login", "last_login": "Never (first login)", "time": AT})}
    for event in (login, alert("word by hand"), beat("Someone asked for this heartbeat by hand")):
        assert decide.first_message_fault(typed(request(event, fresh=True))) is None


def test_it_says_that_it_is_rule_based() -> None:
    """Asked what it is, and in its first greeting, it says that it is no language model."""
    for text in ("who are you?", "What are you", "are you a language model?", "Are you human?"):
        assert "not a language model" in said(request(user(text)))
    assert "rule-based" in said(request(user("Hello"), fresh=True))
    assert "rule-based" not in said(request(user("Hello")))


def test_it_greets_by_name() -> None:
    """A greeting holds the name of the block, and none where it is unknown."""
    assert "Chad" in said(request(user("hi!"), human="First name: unknown\nName: Chad"))
    assert "unknown" not in said(request(user("hi!")))


def test_facts_are_written_and_acknowledged_in_one_reply() -> None:
    """Facts go into core memory, one line each, beside one message."""
    (append, arguments), (send, message) = calls(request(user("Hi, my name is Chad and I sail"), human=""))
    assert append == "core_memory_append"
    assert arguments == {"name": "human", "content": "Name: Chad\nThe user said: I sail", "request_heartbeat": False}
    assert send == "send_message"
    assert message == {"message": "Nice to meet you, Chad. I noted that you sail."}


@pytest.mark.parametrize(("text", "line"), [
    ("I'm Dana", "Name: Dana"),
    ("call me Al", "Name: Al"),
    ("my name is chad", "Name: Chad"),
    ("I live in Oslo.", "Lives in: Oslo"),
    ("I like jazz and old maps", "Likes: jazz and old maps"),
    ("I don't like rain", "Dislikes: rain"),
    ("I work as a baker", "Works as: a baker"),
    ("my dog is called Rex", "Dog's name: Rex"),
    ("I have a cat named Tom", "Cat's name: Tom"),
    ("My favourite colour is green!", "Favourite colour: green"),
    ("Remember that the boat leaks", "The user said: the boat leaks"),
    ("please don't forget that I live in Bergen", "Lives in: Bergen"),
    ("I went to Rome in 2019", "The user said: I went to Rome in 2019"),
])  # fmt: skip
def test_a_fact_becomes_a_line(text: str, line: str) -> None:
    """Each way of telling a fact gives one short line."""
    name, arguments = calls(request(user(text), human="Note: none"))[0]
    assert (name, arguments["content"]) == ("core_memory_append", line)


@pytest.mark.parametrize("text", ["I'm tired", "I think so", "I'm not sure", "call me later", "ok", "What a day!"])
def test_small_words_are_no_facts(text: str) -> None:
    """What says nothing lasting leaves memory alone."""
    assert names(request(user(text))) == ["send_message"]


def test_a_nationality_is_no_name() -> None:
    """Not every word with a capital after "I am" is what somebody is called."""
    assert calls(request(user("I am German")))[0][1]["content"] == "The user said: I am German"


def test_a_changed_value_replaces_the_old_one() -> None:
    """A name or a home that changes takes the place of the old line; an unknown name is filled in."""
    edits = calls(request(user("Call me Al"), human="Name: Chad\nLikes: jazz"))
    assert edits[0] == ("core_memory_replace", {
        "name": "human", "old_content": "Name: Chad", "new_content": "Name: Al", "request_heartbeat": False,
    })  # fmt: skip
    assert calls(request(user("I moved to Rome"), human="Lives in: Oslo"))[0][1]["new_content"] == "Lives in: Rome"
    assert names(request(user("my name is Chad and I sail"))) == [
        "core_memory_replace", "core_memory_append", "send_message",
    ]  # fmt: skip


def test_a_known_fact_is_not_written_twice() -> None:
    """What stands in the block is acknowledged only."""
    assert names(request(user("I live in Oslo"), human="Lives in: Oslo")) == ["send_message"]


def test_without_a_human_block_facts_are_archived() -> None:
    """Where there is no block for them, facts still have a place."""
    assert names(request(user("I live in Oslo"), human=None)) == ["archival_memory_insert", "send_message"]


def test_forgetting_removes_the_line() -> None:
    """A line of the block is removed exactly as it stands; an unknown one is said to be unknown."""
    removed = calls(request(user("Forget that I like jazz."), human="Name: Chad\nLikes: jazz"))
    assert removed[0] == ("core_memory_remove", {"name": "human", "content": "Likes: jazz", "request_heartbeat": False})
    assert names(request(user("forget that I like opera"), human="Name: Chad")) == ["archival_memory_search"]


@pytest.mark.parametrize(("question", "answer"), [
    ("What is my name?", "Chad"),
    ("Where do I live?", "Oslo"),
    ("What is my dog called?", "Rex"),
    ("what's my dog's name", "Rex"),
    ("What is my job?", "baker"),
    ("What do I like?", "you like jazz, and you like maps"),
    ("Do I sail?", "You sail"),
    ("Who am I?", "your name is Chad"),
    ("What do you know about me?", "you live in Oslo"),
    ("What time is it?", AT),
])  # fmt: skip
def test_questions_are_answered_from_the_block(question: str, answer: str) -> None:
    """What the block holds is answered at once, without a search."""
    body = request(user(question), human=BLOCK)
    assert names(body) == ["send_message"]
    assert answer.lower() in said(body).lower()


def test_a_fact_and_a_question_are_served_together() -> None:
    """A question may be answered by what was told in the same message."""
    body = request(user("I'm Dana. What is my name?"), human="")
    assert names(body) == ["core_memory_append", "send_message"]
    assert "Your name is Dana." in said(body)
