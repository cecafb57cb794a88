"""`everlog prompt`: show and change the sections of an agent's system prompt. Each change is one event.

Called by `cli.command_run`.
"""

from argparse import Namespace
from collections.abc import Callable, Sequence

from everlog.actors.agent.agent_setup import Settings
from everlog.actors.prompt import prompt_sections
from everlog.events import BadInput, Section
from everlog.interfaces.common.bootstrap import opened_view
from everlog.interfaces.common.error_output import escape_line, sanitize
from everlog.interfaces.common.front_end import CommandEnvironment
from everlog.interfaces.common.input_text import required_text
from everlog.interfaces.common.plural import plural
from everlog.interfaces.common.settings_from_args import variables_of
from everlog.interfaces.manage.configure_command import configure_agent, print_changes, recorded
from everlog.interfaces.output import json_shapes

SectionTransform = Callable[[Sequence[Section]], list[Section]]


def show(args: Namespace, world: CommandEnvironment) -> int:
    """Run the command `prompt show`."""
    with opened_view(args, world) as view:
        context = view.context()
        blocks = view.rows("core_memory")
        known = view.schemas(context.config.functions)
        agent_id, seq = view.agent_id, view.seq
    config = context.config
    facts = prompt_sections.facts_of(agent_id, blocks)
    schemas = [known[function.sha256] for function in config.functions if function.sha256 in known]
    rows = [
        _row(place, section, prompt_sections.render_section(config, section, schemas, facts), context.tokens_per_byte)
        for place, section in enumerate(prompt_sections.of(config), 1)
        if args.section in {None, section.name}
    ]
    if not rows:
        names = ", ".join(section.name for section in prompt_sections.of(config))
        raise BadInput(f"The prompt of {agent_id!r} has no section {args.section!r}; its sections: {names}.")
    shape = {
        "agent": agent_id,
        "as_of": seq,
        "preset": config.preset or None,
        "characters": len(config.text),
        "tokens": _tokens(config.text, context.tokens_per_byte),
        "sections": rows,
    }
    print(json_shapes.line(shape)) if args.json else _print(shape, one=args.section is not None)
    return 0


def _row(place: int, section: Section, gives: str, tokens_per_byte: float) -> json_shapes.JsonObject:
    return {
        "place": place,
        "name": section.name,
        "visible": section.visible,
        "characters": len(gives),
        "tokens": _tokens(gives, tokens_per_byte),
        "template": section.text,
        "text": gives,
    }


def _tokens(text: str, tokens_per_byte: float) -> int:
    return round(len(text.encode()) * tokens_per_byte)


def _print(shape: json_shapes.JsonObject, *, one: bool) -> None:
    if not one:
        preset = f", preset {shape['preset']}" if shape["preset"] else ""
        print(escape_line(f"{shape['agent']}: {_size(shape)}{preset}"))
    for row in shape["sections"]:
        hidden = "" if row["visible"] else ", hidden"
        print(sanitize(f"\n{row['place']}. {row['name']} ({_size(row)}{hidden})"))
        if one and row["template"] != row["text"]:
            print(sanitize(f"--- template\n{row['template']}\n--- rendered text"))
        print(sanitize(row["text"]))


def _size(shape: json_shapes.JsonObject) -> str:
    return f"{plural(shape['characters'], 'character')}, ~{plural(shape['tokens'], 'token')}"


def add(args: Namespace, world: CommandEnvironment) -> int:
    """Run the command `prompt add`."""
    section = _section(args)
    return _change(args, world, lambda known: prompt_sections.add_section(known, section, args.place))


def set_(args: Namespace, world: CommandEnvironment) -> int:
    """Run the command `prompt set`."""
    section = _section(args)
    return _change(args, world, lambda known: prompt_sections.reworded(known, section.name, section.text))


def move(args: Namespace, world: CommandEnvironment) -> int:
    """Run the command `prompt move`."""
    return _change(args, world, lambda known: prompt_sections.move_section(known, args.section, args.place))


def hide(args: Namespace, world: CommandEnvironment) -> int:
    """Run the command `prompt hide`."""
    return _change(args, world, lambda known: prompt_sections.shown(known, args.section, visible=False))


def unhide(args: Namespace, world: CommandEnvironment) -> int:
    """Run the command `prompt unhide`."""
    return _change(args, world, lambda known: prompt_sections.shown(known, args.section, visible=True))


def remove(args: Namespace, world: CommandEnvironment) -> int:
    """Run the command `prompt remove`."""
    return _change(args, world, lambda known: prompt_sections.removed(known, args.section))


def render(args: Namespace, world: CommandEnvironment) -> int:
    """Run the command `prompt render`."""
    return _change(args, world, list)


def reset(args: Namespace, world: CommandEnvironment) -> int:
    """Run the command `prompt reset`."""
    return print_changes(args, *configure_agent(args, world, Settings(sections=(), preset=args.preset)))


def _change(args: Namespace, world: CommandEnvironment, work: SectionTransform) -> int:
    """Replace the agent's sections by `work` of them, and print the changes.

    An agent whose prompt is a text or a preset gets sections of its own, if `work` changes them.
    """
    config = recorded(args, world)
    wanted = work(prompt_sections.of(config))
    if wanted == prompt_sections.of(config) and not config.sections:
        return print_changes(args, config, config)
    return print_changes(args, *configure_agent(args, world, Settings(sections=wanted)))


def _section(args: Namespace) -> Section:
    """Return the section with the text from TEXT, stdin or --file, and with the variables of --var."""
    (made,) = prompt_sections.with_variables([Section(args.section, required_text(args))], variables_of(args.var))
    return made
