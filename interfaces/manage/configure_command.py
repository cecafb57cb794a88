"""The command `configure`: show the settings of an agent, or change them with one event.

Called by `cli.command_run`; `section_commands` changes the prompt through `configure_agent`.
"""

import asyncio
from argparse import Namespace
from collections.abc import Sequence
from typing import Any

import msgspec

from everlog.actors.agent.agent_setup import Settings, check_functions_given
from everlog.actors.prompt import prompt_sections
from everlog.actors.replay.agent_diff import SETTINGS, setting_changes
from everlog.events import AgentConfigured, Section
from everlog.interfaces.common import settings_from_args
from everlog.interfaces.common.bootstrap import agents_of, open_view, system_of
from everlog.interfaces.common.error_output import escape_line, sanitize
from everlog.interfaces.common.front_end import CommandEnvironment
from everlog.interfaces.common.open_store import text_of, without_take_over
from everlog.interfaces.common.plural import plural
from everlog.interfaces.manage.many_agents import for_each, matching, outcome, takes_many
from everlog.interfaces.output import json_shapes
from everlog.store import name_of

LINE_CHARS = 100
"""Length of the longest value that is printed in full."""


def configure(args: Namespace, world: CommandEnvironment) -> int:
    """Run the command `configure`."""
    if args.name is None:
        args.fail("give the name of an agent, a pattern, or --label")
    if getattr(args, "chosen", None) is not None:
        args.labels = None  # they say which agents, and are no setting
    wanted = Settings(
        model=args.model,
        window=args.window,
        zone=args.zone,
        preset=args.preset,
        system=text_of(args.system) if args.system else None,
        verify_first=args.verify_first,
        **settings_from_args.settings_in(args, text_of),
    )
    many = takes_many(args, system_of(args, world).agents())
    if wanted == Settings():
        if many:
            args.fail("several agents need a setting to change; one agent's settings are shown by its name")
        return _show(args, world)
    if many:
        return _configure_matching(args, world, wanted)
    before, after = configure_agent(args, world, wanted)
    return print_changes(args, before, after)


def _configure_matching(args: Namespace, world: CommandEnvironment, wanted: Settings) -> int:
    """Change the settings of the agents that a pattern matches. The error of one agent does not stop the others."""
    names, damaged, _ = matching(args, world)

    async def change() -> Sequence[str]:
        async with agents_of(args, world) as system:

            async def one(name: str) -> None:
                agent = await system.agent(name, create=False, keep_configuration=True, command="everlog configure")
                await agent.configure(wanted)
                await system.unload(name)

            return await for_each(names, one, "changed")

    with without_take_over():
        failed = asyncio.run(change())
    changed = [name for name in names if name not in failed]
    print(json_shapes.line({"configured": changed}) if args.json else outcome(len(changed), failed, "Configured"))
    return int(bool(failed or damaged))


def configure_agent(
    args: Namespace, world: CommandEnvironment, wanted: Settings
) -> tuple[AgentConfigured, AgentConfigured]:
    """Change the settings of an existing agent. Return its configurations before and after. Raises BadInput."""
    before = recorded(args, world)
    with without_take_over():
        asyncio.run(_configure(args, world, wanted))
    return before, recorded(args, world)


def recorded(args: Namespace, world: CommandEnvironment) -> AgentConfigured:
    """Return the agent's current configuration. Raise UsageError if --tools does not provide one of its functions."""
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
    """Print each changed setting with its value before and after. Return the exit code."""
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
            print(sanitize(f"sections: {_section_changes(prompt_sections.of(before), prompt_sections.of(after))}"))
        elif name == "functions":
            print(escape_line(f"functions: {_function_changes(*names)}"))
        else:
            own = name == "preset" and not now and after.sections
            print(escape_line(f"{name}: {_short(then)} -> {'own sections' if own else _short(now)}"))
    if not changes:
        print("Nothing was changed: the agent has these settings already.")
    return 0


def _function_changes(before: Sequence[str], after: Sequence[str]) -> str:
    """Return what changed between two lists of functions, such as "added find_book, removed plan_make"."""
    parts = [f"added {name}" for name in after if name not in before]
    return ", ".join([*parts, *(f"removed {name}" for name in before if name not in after)])


def _section_changes(before: Sequence[Section], after: Sequence[Section]) -> str:
    """Return what changed between two lists of sections, such as "added manners, hid tools"."""
    old, new = ({section.name: section for section in side} for side in (before, after))
    both = [name for name in new if name in old]
    parts = [f"added {name}" for name in new if name not in old]
    parts += [f"removed {name}" for name in old if name not in new]
    parts += [f"changed {name}" for name in both if old[name].text != new[name].text]
    parts += [f"{'unhid' if new[name].visible else 'hid'} {name}" for name in both
              if old[name].visible != new[name].visible]  # fmt: skip
    if both != [name for name in old if name in new]:
        parts.append(f"now in the order {', '.join(new)}")
    return ", ".join(parts) or "unchanged"


def _short(value: Any) -> str:
    text = str(value)
    if text in {"", "None"}:
        return "none"
    return text if len(text) <= LINE_CHARS and "\n" not in text else f"a text of {plural(len(text), 'character')}"


def _show(args: Namespace, world: CommandEnvironment) -> int:
    """Print the current settings: the command without options."""
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
        print(escape_line(f"{name}: {_short('' if name == 'sampling' and not isinstance(value, str) else value)}"))
    return 0
