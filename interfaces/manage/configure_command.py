"""The command `configure`: how an agent is set up, and what is to be otherwise. One event, or none."""

import asyncio
from argparse import Namespace
from collections.abc import Sequence
from typing import Any

import msgspec

from everlog.actors.agent.agent_setup import Settings, check_functions_given
from everlog.actors.replay.agent_diff import SETTINGS, setting_changes
from everlog.events import AgentConfigured, Section
from everlog.interfaces.common import settings_from_args
from everlog.interfaces.common.bootstrap import agents_of, leaving_alone, open_view, system_of, text_of
from everlog.interfaces.common.error_output import sanitize
from everlog.interfaces.common.front_end import CommandEnvironment
from everlog.interfaces.output import json_shapes
from everlog.store import name_of

LINE_CHARS = 100
"""Longest value that is printed as it is."""


def configure(args: Namespace, world: CommandEnvironment) -> int:
    """The command."""
    wanted = Settings(
        model=args.model,
        window=args.window,
        zone=args.zone,
        preset=args.preset,
        system=text_of(args.system) if args.system else None,
        verify_first=args.verify_first,
        **settings_from_args.settings_in(args, text_of),
    )
    if wanted == Settings():
        return _show(args, world)
    before, after = configure_agent(args, world, wanted)
    return print_changes(args, before, after)


def configure_agent(
    args: Namespace, world: CommandEnvironment, wanted: Settings
) -> tuple[AgentConfigured, AgentConfigured]:
    """Set an agent that exists up anew; its configurations before and after. Raises BadInput."""
    before = recorded(args, world)
    with leaving_alone():
        asyncio.run(_configure(args, world, wanted))
    return before, recorded(args, world)


def recorded(args: Namespace, world: CommandEnvironment) -> AgentConfigured:
    """How the agent is set up now. Raises UsageError where it has functions that --tools does not bring."""
    system = system_of(args, world)
    with open_view(system, args.name) as view:
        config = view.context().config
        check_functions_given(view.agent_id, config, system.tools)
    return config


async def _configure(args: Namespace, world: CommandEnvironment, wanted: Settings) -> None:
    async with agents_of(args, world) as system:
        agent = await system.agent(
            name_of(args.name), create=False, keep_configuration=True, command=f"everlog {args.command}"
        )
        await agent.configure(wanted)


def print_changes(args: Namespace, before: AgentConfigured, after: AgentConfigured) -> int:
    """Say what changed: before, and after."""
    changes: list[tuple[str, Any, Any]] = list(setting_changes(before, after))
    names = [sorted(function.name for function in side.functions) for side in (before, after)]
    if names[0] != names[1]:
        changes.append(("functions", ", ".join(names[0]), ", ".join(names[1])))
    if args.json:
        shape = [{"name": name, "before": then, "after": now} for name, then, now in changes]
        print(json_shapes.line({"agent": name_of(args.name), "changed": shape}))
        return 0
    for name, then, now in changes:
        if name == "sections":
            then, now = (", ".join(map(_option_of, side.sections)) for side in (before, after))
            if then == now:
                edited = (new.name for old, new in zip(before.sections, after.sections, strict=False) if old != new)
                print(sanitize(f"sections edited: {', '.join(edited)}"))
                continue
        print(sanitize(f"{name}: {_short(then)} -> {_short(now)}"))
    if not changes:
        print("Nothing is different: it was set up so already.")
    return 0


def _option_of(section: Section) -> str:
    return section.name if section.visible else f"({section.name})"


def _short(value: Any) -> str:
    text = str(value)
    if text in {"", "None"}:
        return "none"
    return text if len(text) <= LINE_CHARS and "\n" not in text else f"a text of {len(text):,} characters"


def _show(args: Namespace, world: CommandEnvironment) -> int:
    """Without options: the settings that there are."""
    with open_view(system_of(args, world), args.name) as view:
        config = view.context().config
    blank = AgentConfigured(model="", window=0, renderer=0)
    known = {name: value for name, _, value in setting_changes(blank, config)}
    rows: Sequence[tuple[str, Any]] = [
        (name, known.get(name, getattr(blank, name, None))) for name in SETTINGS if name not in {"text", "sections"}
    ]
    if args.json:
        values = dict(rows)
        values["sampling"] = msgspec.to_builtins(config.sampling)
        values["functions"] = [function.name for function in config.functions]
        print(json_shapes.line({"agent": name_of(args.name), "settings": values}))
        return 0
    for name, value in rows:
        print(sanitize(f"{name}: {_short('' if name == 'sampling' and not isinstance(value, str) else value)}"))
    return 0
