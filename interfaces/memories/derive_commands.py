"""`everlog derive`, `reflect` and `withdraw`: conclude memories from what was said, compare generations, undo.

Called by `cli.command_run`. None of them runs a turn; only a derivation with --model asks a model.
"""

import asyncio
from argparse import Namespace
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, TypeVar

from everlog.actors.agent_ref import AgentRef
from everlog.actors.derivation.conclusions import DerivationReport
from everlog.events import DerivationKind
from everlog.interfaces.common.bootstrap import agents_of, open_view, system_of
from everlog.interfaces.common.error_output import escape_line, sanitize
from everlog.interfaces.common.front_end import CommandEnvironment
from everlog.interfaces.common.input_text import check_text
from everlog.interfaces.common.open_store import without_take_over
from everlog.interfaces.common.plural import plural
from everlog.interfaces.output import json_shapes
from everlog.store import name_of

T = TypeVar("T")
_REFUSALS_SHOWN = 5


def derive(args: Namespace, world: CommandEnvironment) -> int:
    """Run `everlog derive` and return its exit code."""
    reports = _derived(args, world, args.kinds or ["facts", "reflection"])
    if args.use:
        asyncio.run(_on_agent(args, world, lambda agent: agent.memories.choose_generation(args.generation)))
    compared = _compared(args, world) if args.compare else None
    if args.json:
        shape = {"agent": args.name, "derivations": [_shape(report) for report in reports]}
        print(json_shapes.line(shape if compared is None else {**shape, "compared": compared}))
        return 0
    for report in reports:
        _say(args.name, report)
    if compared is not None:
        from everlog.interfaces.output import memory_pages, show_pages

        show_pages.show(memory_pages.compared(args.name, args.generation, compared))
    return 0


def reflect(args: Namespace, world: CommandEnvironment) -> int:
    """Run `everlog reflect` and return its exit code."""
    (facts, reflection) = _derived(args, world, ["facts", "reflection"])
    if args.json:
        print(json_shapes.line({"agent": args.name, "derivations": [_shape(facts), _shape(reflection)]}))
        return 0
    _say(args.name, facts)
    _say(args.name, reflection)
    return 0


def withdraw(args: Namespace, world: CommandEnvironment) -> int:
    """Run `everlog withdraw` and return its exit code."""
    reason = check_text(args.reason or "")
    changed = asyncio.run(
        _on_agent(
            args, world, lambda agent: agent.memories.withdraw(args.seqs, reason=reason, withdrawn=not args.restore)
        )
    )
    if args.json:
        print(json_shapes.line({"agent": args.name, "seqs": args.seqs, "changed": changed}))
        return 0
    seqs = ", ".join(map(str, args.seqs))
    done = "counts again" if args.restore else "no longer counts"
    print(escape_line(f"{seqs} {done}." if changed else f"Nothing changed: {seqs} {done} already."))
    return 0


def _derived(args: Namespace, world: CommandEnvironment, kinds: Sequence[DerivationKind]) -> list[DerivationReport]:
    async def work(agent: AgentRef) -> list[DerivationReport]:
        return [await agent.memories.derive(kind, generation=args.generation, model=args.model or "") for kind in kinds]

    return asyncio.run(_on_agent(args, world, work))


async def _on_agent(args: Namespace, world: CommandEnvironment, work: Callable[[AgentRef], Awaitable[T]]) -> T:
    """Open an existing agent and await `work` on it, which runs no turn."""
    name = name_of(args.name)
    with open_view(system_of(args, world), name, notify=False), without_take_over():
        async with agents_of(args, world) as system:
            command = f"everlog {args.command}"
            return await work(await system.agent(name, create=False, keep_configuration=True, command=command))


def _shape(report: DerivationReport) -> json_shapes.JsonObject:
    return {
        "derivation": report.derivation, "generation": report.generation, "deriver": report.deriver,
        "read": report.read, "noted": report.noted, "refused": list(report.refused), "to_seq": report.to_seq,
    }  # fmt: skip


def _say(name: str, report: DerivationReport) -> None:
    """Print what came of a derivation, with the first reasons for which proposals were refused."""
    what = {"facts": "fact record", "reflection": "insight"}.get(report.derivation, "record")
    if not report.read:
        print(escape_line(f"{name}: nothing new for {report.derivation} since seq {report.to_seq}."))
        return
    by = "rules" if report.deriver.startswith("rules") else report.deriver
    read = plural(report.read, "memory", "memories")
    print(escape_line(f"{name}: read {read}, noted {plural(report.noted, what)} (by {by}: {report.deriver})."))
    counts = Counter(report.refused)
    for reason, count in counts.most_common(_REFUSALS_SHOWN):
        print(sanitize(f"  refused {count}: {reason}"))


def _compared(args: Namespace, world: CommandEnvironment) -> dict[str, Any]:
    """Return what two generations of the same log have in common and what only one has, by kind of memory."""
    with open_view(system_of(args, world), name_of(args.name), notify=False) as view:
        rows = view.rows("derived_records")
    other = args.compare
    return {
        "generations": [other, args.generation],
        "facts": _difference(rows, "fact_noted", other, args.generation),
        "insights": _difference(rows, "insight_noted", other, args.generation),
        "withdrawn": _withdrawn(rows, (other, args.generation)),
    }


def _difference(rows: Sequence[dict[str, Any]], kind: str, first: int, second: int) -> dict[str, list[str]]:
    texts = [
        {" ".join(row["text"].split()) for row in rows if row["type"] == kind and row["generation"] == generation}
        for generation in (first, second)
    ]
    return {
        "both": sorted(texts[0] & texts[1]),
        "only_first": sorted(texts[0] - texts[1]),
        "only_second": sorted(texts[1] - texts[0]),
    }


def _withdrawn(rows: Sequence[dict[str, Any]], generations: Sequence[int]) -> list[int]:
    return [sum(row["withdrawn"] for row in rows if row["generation"] == generation) for generation in generations]
