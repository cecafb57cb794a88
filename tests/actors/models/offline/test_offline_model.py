"""The offline model, from request bytes to response bytes, without key, network or clock."""

import asyncio
import json

import pytest

from everlog.actors.formats.calling_format import CALL_ID_CHARS_MAX
from everlog.actors.models.offline import MODEL, OfflineModel, reply
from everlog.actors.rules import first_message
from everlog.events import ModelError
from tests.support.models.offline_requests import (
    AT,
    BLOCK,
    alert,
    beat,
    calls,
    names,
    request,
    said,
    spoken,
    talk,
    typed,
    user,
)


def test_the_same_request_has_the_same_answer() -> None:
    """The answer depends on the bytes of the request only."""
    body = request(user("Hi there"))
    assert reply(body) == reply(body)
    assert reply(body) != reply(request(user("Hi you")))


def test_the_answer_is_a_chat_completion() -> None:
    """Ids come from the request, usage counts a token for four bytes, and the answer names the model."""
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
    """`ask` returns the reply with its latency, and a second close has no effect."""
    model = OfflineModel()
    body = request(user("hi"))
    answer = asyncio.run(model.ask(body))
    asyncio.run(model.close())
    asyncio.run(model.close())
    assert model.name == "offline"
    assert answer.raw.encode() == reply(body)
    assert answer.latency_us >= 0


def test_invalid_request_bytes_are_a_model_error() -> None:
    """Bytes that are no request raise ModelError."""
    for body in (b"", b"{", b"[]", b'{"messages": 3}', b"\xff"):
        with pytest.raises(ModelError, match="no chat-completions request"):
            reply(body)


FIRST = ["hi", "my name is Chad and I sail", "What is the capital of France?", "what did we say on 2023-05-08?", "",
         "keep this: the tide turns at six", "forget that I sail"]  # fmt: skip


@pytest.mark.parametrize("text", FIRST)
def test_the_first_reply_passes_the_check_of_first_messages(text: str) -> None:
    """To any first message the reply sends a message or searches the archive, and has a valid monologue."""
    first = typed(request(user(text), fresh=True))
    assert first_message.first_message_fault(first, aloud=True) is None


def test_every_first_event_passes_the_check_of_first_messages() -> None:
    """A login, an alert or a heartbeat may come first as well."""
    login = {"role": "user", "content": json.dumps({"type": "login", "last_login": "Never (first login)", "time": AT})}
    for event in (login, alert("word by hand"), beat("Someone asked for this heartbeat by hand")):
        assert first_message.first_message_fault(typed(request(event, fresh=True)), aloud=True) is None


def test_it_says_that_it_is_rule_based() -> None:
    """Asked about itself, and in its first greeting, the model says that it is no language model."""
    for text in ("who are you?", "What are you", "are you a language model?", "Are you human?"):
        assert "not a language model" in said(request(user(text)))
    assert "rule-based" in said(request(user("Hello"), fresh=True))
    assert "rule-based" not in said(request(user("Hello")))


def test_it_greets_by_name() -> None:
    """A greeting contains the name from the block, or none if the block has none."""
    assert "Chad" in said(request(user("hi!"), human="First name: unknown\nName: Chad"))
    assert "unknown" not in said(request(user("hi!")))


def test_facts_are_written_and_acknowledged_in_one_reply() -> None:
    """Facts go into core memory, one line each, and the reply sends one message."""
    (append, arguments), (send, message) = calls(request(user("Hi, my name is Chad and I sail"), human=""))
    assert append == "core_memory_append"
    assert arguments == {"name": "human", "content": "Name: Chad\nThe user said: I sail", "request_heartbeat": False}
    assert send == "send_message"
    assert message == {"message": "Nice to meet you, Chad. I noted that you sail."}


@pytest.mark.parametrize(("text", "line"), [
    ("I'm Dana", "Name: Dana"),
    ("call me Al", "Name: Al"),
    ("my name is chad", "Name: Chad"),
    ("I am German", "The user said: I am German"),
    ("I live in Oslo.", "The user said: I live in Oslo"),
    ("my dog is called Rex", "The user said: my dog is called Rex"),
    ("Remember that the boat leaks", "The user said: the boat leaks"),
    ("please don't forget that I live in Bergen", "The user said: I live in Bergen"),
    ("Remember my name is Dana and I sail", "Name: Dana\nThe user said: I sail"),
    ("I sail. Do you? My boat leaks", "The user said: I sail\nThe user said: My boat leaks"),
    ("remind me to call mum tomorrow", "To do: call mum tomorrow"),
    ("Please remember to buy milk!", "To do: buy milk"),
    ("add new sails to my to-do list", "To do: new sails"),
])  # fmt: skip
def test_a_fact_becomes_a_line(text: str, line: str) -> None:
    """Each supported wording of a fact gives one short line."""
    name, arguments = calls(request(user(text), human="Note: none"))[0]
    assert (name, arguments["content"]) == ("core_memory_append", line)


@pytest.mark.parametrize("text", ["I'm tired", "I think so", "call me later", "ok", "What a day!", "It rained all day"])
def test_a_message_without_facts_is_not_understood(text: str) -> None:
    """A message without facts about the user does not change memory, and the reply says that it was not understood."""
    assert names(request(user(text))) == ["send_message"]
    assert "I do not understand that" in said(request(user(text)))


@pytest.mark.parametrize(("text", "old", "new"), [
    ("Call me Al", "Name: Chad", "Name: Al"),
    ("Call me Al", "First name: unknown", "First name: Al"),
    ("I moved to Rome", "The user said: I live in Oslo", "The user said: I moved to Rome"),
    ("my phone number is 2", "The user said: my phone number is 1", "The user said: my phone number is 2"),
    ("My dog is called Tom", "The user said: my dog is called Rex", "The user said: My dog is called Tom"),
])  # fmt: skip
def test_a_changed_value_replaces_the_old_one(text: str, old: str, new: str) -> None:
    """A new value of a fact replaces the old line; an unknown name is filled in."""
    edits = calls(request(user(text), human=f"The user said: I sail\n{old}"))
    assert edits[0] == ("core_memory_replace", {
        "name": "human", "old_content": old, "new_content": new, "request_heartbeat": False,
    })  # fmt: skip
    assert names(request(user("my dog is old"), human=old)) == ["core_memory_append", "send_message"]


def test_a_value_corrected_in_one_message_is_written_once() -> None:
    """A message that states and corrects a fact appends one line with the last value."""
    body = request(user("I live in Oslo. Call me Al. I moved to Rome."), human="")
    assert names(body) == ["core_memory_append", "send_message"]
    assert calls(body)[0][1]["content"] == "The user said: I moved to Rome\nName: Al"


def test_a_line_is_replaced_as_it_stands() -> None:
    """The text to replace is taken from the block exactly, with its spaces."""
    edits = calls(request(user("Call me Al"), human=" Name:  Chad "))
    assert edits[0][1]["old_content"] == " Name:  Chad "


def test_a_known_fact_is_not_written_twice() -> None:
    """A fact that is already in the block, in any case of letters, is acknowledged and not appended."""
    for text, human in (("I sail", "The user said: I sail"), ("my name is chad", "First name: Chad")):
        assert names(request(user(text), human=human)) == ["send_message"]
        assert "I know that already" in said(request(user(text), human=human))


def test_without_a_human_block_facts_are_archived() -> None:
    """Without a `human` block, facts are stored in archival memory."""
    assert names(request(user("I live in Oslo"), human=None)) == ["archival_memory_insert", "send_message"]


@pytest.mark.parametrize(("text", "line"), [
    ("Forget that I sail.", "The user said: I sail"),
    ("Done: buy milk", "To do: buy milk"),
    ("cross off milk from my to-do list", "To do: buy milk"),
])  # fmt: skip
def test_forgetting_removes_the_line(text: str, line: str) -> None:
    """A matching line of the block is removed; if none matches, the reply says so."""
    removed = calls(request(user(text), human=BLOCK))
    assert removed[0] == ("core_memory_remove", {"name": "human", "content": line, "request_heartbeat": False})
    assert "nothing to take out" in said(request(user(text), human="Name: Chad"))


@pytest.mark.parametrize(("question", "answer"), [
    ("What is my name?", "Your name is Chad."),
    ("What is my dog called?", "Your dog is called Rex."),
    ("what's my dog's name", "Your dog is called Rex."),
    ("Do I sail?", "You sail."),
    ("what is on my to-do list?", "On your to-do list: buy milk."),
    ("Who am I?", "your name is Chad"),
    ("What do you know about me?", "you sail"),
])  # fmt: skip
def test_questions_are_answered_from_the_block(question: str, answer: str) -> None:
    """A question about the block is answered without a search."""
    body = request(user(question), human=BLOCK)
    assert names(body) == ["send_message"]
    assert answer in said(body)


@pytest.mark.parametrize(("question", "line", "answer"), [
    ("what is my phone number?", "Phone number: 555 1234", "Your phone number is 555 1234."),
    ("How old am I?", "The user said: I'm 41", "You're 41."),
    ("where do I live?", "The user said: we live in Oslo with my wife", "You live in Oslo with your wife."),
    ("what is on my to-do list?", "Name: Chad", "Your to-do list is empty."),
    ("what is my name?", "First name: unknown", "I do not know your name yet. What is it?"),
    ("who am I?", "First name: unknown", "I know nothing about you yet. Tell me!"),
])  # fmt: skip
def test_the_block_answers_in_good_english(question: str, line: str, answer: str) -> None:
    """Lines that a person wrote are quoted in one sentence, and empty lines are skipped."""
    assert said(request(user(question), human=line)) == answer


def test_a_fact_and_a_question_are_served_together() -> None:
    """A question may be answered from a fact in the same message."""
    body = request(user("I'm Dana. What is my name?"), human="")
    assert names(body) == ["core_memory_append", "send_message"]
    assert "Your name is Dana." in said(body)


CHAT = [
    ("Hi, my name is Chad and I sail", "Nice to meet you, Chad. I noted that you sail."),
    ("What is my name?", "Your name is Chad."),
    ("remind me to call mum", 'I noted: "call mum" is on your to-do list.'),
    ("what do I have to do?", "On your to-do list: call mum."),
    ("keep this: the wifi is blue", "I keep that in my archival memory."),
    ("search your archive for wifi", 'I kept: "the wifi is blue"'),
    ("what did I say about sailing?", 'you said: "Hi, my name is Chad and I sail"'),
    ("what did we talk about?", 'you said: "Hi, my name is Chad and I sail"'),
    ("who is my dentist?", "I do not know: my memory holds nothing about dentist."),
    ("how are you?", "not a language model"),
    ("thanks a lot!", "You are welcome."),
    ("bye!", "Goodbye"),
]  # fmt: skip


def test_a_first_hour_reads_well() -> None:
    """Each answer of a first conversation is to the point, and no turn makes a call twice."""
    for (line, expected), turn in zip(CHAT, talk([line for line, _ in CHAT]), strict=True):
        assert expected in spoken(turn), line
        made = [(name, str(arguments)) for name, arguments in turn]
        assert len(set(made)) == len(made), line
