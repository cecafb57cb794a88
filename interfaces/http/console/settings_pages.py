"""Show the settings of an agent at a moment with their changes, and change the plain ones of them with a form."""

from collections.abc import Mapping, Sequence
from typing import Any, Literal, NamedTuple

from starlette.responses import Response

from everlog.actors.agent.agent_view import AgentView
from everlog.actors.replay.agent_diff import setting_changes
from everlog.events import AgentConfigured, BadInput, event_of, is_erased
from everlog.interfaces.http.console.agent_frame import AgentFrame, framed, page_of_agent
from everlog.interfaces.http.console.form_body import FORM_BYTES_MAX, read_form
from everlog.interfaces.http.console.page_response import redirect
from everlog.interfaces.http.console.tilde_names import name_in, written
from everlog.interfaces.http.core.refusals import Refusal
from everlog.interfaces.http.core.routes import HttpCall
from everlog.interfaces.http.native.agents import settings_in

CHANGES_SHOWN = 20
"""Newest changes of the configuration that the page lists."""
CELL_CHARS = 4000


class SettingField(NamedTuple):
    """Field of the form."""

    name: str
    label: str
    kind: Literal["text", "whole", "number"]
    hint: str


FIELDS = (
    SettingField("model", "Model", "text", "name of the model, as `everlog models` has it"),
    SettingField("window", "Context window", "whole", "tokens"),
    SettingField("zone", "Time zone", "text", "IANA name, such as Europe/Berlin: the agent sees times in it"),
    SettingField("fallback", "Fallback model", "text", "called if the model fails; empty: none"),
    SettingField("summarizer", "Summarizer", "text", "model that writes summaries; empty: the agent's own"),
    SettingField("pressure_fraction", "Warned at", "number", "fraction of the window, from 0 to 1"),
    SettingField("keep_last", "Kept by summaries", "whole", "newest messages that a summary leaves alone"),
    SettingField("steps_max", "Steps of a turn", "whole", "most model calls"),
    SettingField("day_tokens_max", "Tokens a day", "whole", "0: no limit"),
    SettingField("day_cost_max", "Money a day", "number", "in the currency of the prices; 0: no limit"),
)  # fmt: skip
_NAMES = {"text": "words", "whole": "a whole number", "number": "a number"}


class SettingsChange(NamedTuple):
    """Record that configured the agent, with the settings that it changed."""

    seq: int
    at: int
    changes: Sequence[tuple[str, object, object]]


async def show_settings(call: HttpCall) -> Response:
    """Show the settings at a moment, their changes up to then, and the form to change them now."""
    return page_of_agent(call, "settings", "settings.html", {**await _values(call), "given": {}, "fault": ""})


async def save_settings(call: HttpCall) -> Response:
    """Change the settings that differ from those of now. A value that is none answers 400, and stays in the form."""
    fields = await read_form(call, FORM_BYTES_MAX)
    agent = name_in(call.params["agent"])
    writer = HttpCall(call.service, call.caller, call.request, params={**call.params, "agent": agent})
    values = await _values(call)
    config: AgentConfigured | None = values["config"]
    given = {field.name: fields[field.name].strip() for field in FIELDS if field.name in fields}
    try:
        wanted = {name: value for name, value in parsed(given).items() if getattr(config, name, None) != value}
        if wanted:
            await (await writer.agent()).configure(settings_in(writer, wanted))
    except (BadInput, Refusal) as error:
        fault = error.problem.message if isinstance(error, Refusal) else str(error)
        shown = {**values, "given": given, "fault": fault}
        return page_of_agent(call, "settings", "settings.html", shown, status=400)
    return redirect(f"/console/a/{written(agent)}/settings")


def parsed(given: Mapping[str, str]) -> dict[str, Any]:
    """Return the fields of the form as settings. Raises BadInput for a number that is none."""
    found: dict[str, Any] = {}
    for field in FIELDS:
        if field.name not in given:
            continue
        try:
            make = {"text": str, "whole": int, "number": float}[field.kind]
            found[field.name] = make(given[field.name])
        except ValueError as error:
            words = f"{field.label} is {_NAMES[field.kind]}, not {given[field.name][:80]!r}. Nothing was changed."
            raise BadInput(words) from error
    return found


async def _values(call: HttpCall) -> dict[str, Any]:
    def read(view: AgentView, _: AgentFrame) -> Mapping[str, Any]:
        seqs = [row["seq"] for row in view.rows("configurations") if row["living"]]
        history = _changes(view, seqs[-CHANGES_SHOWN - 1 :])
        config = history[-1][1] if history else None
        shown: list[SettingsChange] = []
        before = history[0][1] if len(seqs) > CHANGES_SHOWN else None
        for change, after in history[1:] if len(seqs) > CHANGES_SHOWN else history:
            changes = [] if before is None else setting_changes(before, after)
            shown.append(change._replace(changes=changes))
            before = after
        rows = [] if config is None else setting_changes(None, config)
        settings = [(name, value) for name, _, value in rows]
        functions = [] if config is None else [one.name for one in config.functions]
        return {
            "config": config, "settings": settings, "functions": functions, "fields": FIELDS,
            "changes": shown[::-1], "change_count": len(seqs), "cell": CELL_CHARS,
        }  # fmt: skip

    return await framed(call, read)


def _changes(view: AgentView, seqs: Sequence[int]) -> list[tuple[SettingsChange, AgentConfigured]]:
    """Return the configurations of some seqs that were not erased, each with its record."""
    found = []
    for seq in seqs:
        record = next(iter(view.reader.read(view.agent_id, seq, seq)))
        if is_erased(record.payload):
            continue
        event = event_of(record)
        if isinstance(event, AgentConfigured):
            found.append((SettingsChange(seq, record.recorded_at, ()), event))
    return found
