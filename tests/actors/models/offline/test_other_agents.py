"""The offline model writes to other agents when it is told to, passes on what they say, and answers their questions."""

import json
from typing import Any

import pytest

from tests.support.models.offline_requests import AT, FUNCTIONS, calls, names, request, said, user

WRITING = ("message_agent", "ask_agent")


def asked(*chat: dict[str, Any], human: str = "Name: Chad") -> bytes:
    """Return a request of an agent that may write to others."""
    body = json.loads(request(*chat, human=human))
    body["tools"] = [{"type": "function", "function": {"name": name}} for name in (*FUNCTIONS, *WRITING)]
    return json.dumps(body).encode()


def from_agent(text: str, note: str) -> dict[str, Any]:
    """Return a message of another agent, as a request shows it."""
    event = {"type": "agent_message", "name": "bob", "message": text, "instructions": note, "time": AT}
    return {"role": "user", "content": json.dumps(event)}


@pytest.mark.parametrize(
    ("text", "call", "answer"),
    [
        ("Tell @bob that dinner is at 8", ("message_agent", "bob", "dinner is at 8"), "I told bob."),
        ("please ask @eve, when is dinner?", ("ask_agent", "eve", "when is dinner?"), "I asked eve, and tell you the"),
    ],
)
def test_an_order_with_a_name_writes_to_that_agent(text: str, call: tuple[str, str, str], answer: str) -> None:
    """The function gets the name behind the `@` and the words, and the user is told."""
    function, arguments = calls(asked(user(text)))[0]
    assert (function, arguments["name"], arguments["message"]) == call
    assert answer in said(asked(user(text)))


def test_without_the_function_nobody_is_written_to() -> None:
    """An agent that may not write to others does not."""
    assert not {*WRITING} & {*names(request(user("Tell @bob that dinner is at 8")))}


def test_words_of_another_agent_are_passed_on() -> None:
    """A message and an answer are told to the user, each with its name; no fact of the user is taken from it."""
    told = asked(from_agent("My name is Bob", "bob is another agent and waits for no answer."))
    assert (names(told), said(told)) == (["send_message"], "bob says: My name is Bob")
    answer = asked(from_agent("At 8.", "This is what became of your message 12 to bob."))
    assert said(answer) == "bob answers: At 8."


def test_a_question_of_another_agent_is_answered() -> None:
    """It is answered from memory as a user's is."""
    question = from_agent(
        "What is my name?", "bob is another agent and waits for your answer: what you say goes to bob."
    )
    assert "Chad" in said(asked(question))
