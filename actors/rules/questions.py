"""Questions of functions to people: blanks that a person fills in, and the answers with which a call continues. Pure.

A question waits as an approval does. Its call gets one more argument, ANSWERS, with a blank for each field that the
function asks for; the decision fills them in, as it may change any argument. Used by `decide.py` and `approvals.py`.
"""

from collections.abc import Mapping
from typing import Any

import msgspec

from everlog.events import ApprovalRequested, BadInput, Question

ANSWERS = "$answers"
"""Argument that holds the answers: an object for each form of the question."""


def waiting_text(name: str, question: Question) -> str:
    """Return the result of a call that waits for an answer, in words for the model."""
    return (
        f"The call of {name} waits for a person, whom it asks: {question.text} You are told the result later: do not "
        "call it again for this."
    )


def asking(request: ApprovalRequested, arguments: Mapping[str, Any], question: Question) -> ApprovalRequested:
    """Return a request with a question, and blanks in the arguments for its answers: null, or a field's default."""
    blanks = {name: _blanks(schema) for name, schema in question.forms.items()}
    text = msgspec.json.encode({**arguments, ANSWERS: blanks}).decode()
    return msgspec.structs.replace(request, arguments=text, question=question)


def check_answers(question: Question, arguments: str) -> None:
    """Raise BadInput unless the arguments, as JSON text, answer every field that the question needs, and no other."""
    found = msgspec.json.decode(arguments).get(ANSWERS)
    if not isinstance(found, dict) or not all(isinstance(part, dict) for part in found.values()):
        raise BadInput(f"The call asks a question: its answers are an object of objects in {ANSWERS!r}. {_NOTHING}")
    if unknown := sorted(found.keys() - question.forms.keys()):
        raise BadInput(f"The question has no part {', '.join(unknown)}. {_NOTHING}")
    for name, schema in question.forms.items():
        fields, required = _fields(schema)
        given = found.get(name, {})
        if unknown := sorted(given.keys() - fields.keys()):
            raise BadInput(f"The question does not ask for {', '.join(unknown)} in {name!r}. {_NOTHING}")
        missing = [field for field in required if given.get(field) is None]
        if missing:
            raise BadInput(
                f"The call asks: {question.text} Fill in {', '.join(missing)} of {name!r} in {ANSWERS!r}. {_NOTHING}"
            )


def take_answers(arguments: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """Take the answers out of the arguments of a call: the fields that a person filled in, by the names of forms."""
    found = arguments.pop(ANSWERS, {})
    return {name: {key: value for key, value in part.items() if value is not None} for name, part in found.items()}


def _blanks(schema: str) -> dict[str, Any]:
    fields, _ = _fields(schema)
    return {name: field.get("default") if isinstance(field, dict) else None for name, field in fields.items()}


def _fields(schema: str) -> tuple[Mapping[str, Any], list[str]]:
    """Return the fields of a form, and the names of those that it needs."""
    form = msgspec.json.decode(schema)
    fields, required = form.get("properties", {}), form.get("required", [])
    return (fields if isinstance(fields, dict) else {}), [name for name in required if isinstance(name, str)]


_NOTHING = "Nothing was decided."
