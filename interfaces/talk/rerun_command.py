"""The command `rerun`: rerun recorded inputs in a fork with changes, and compare the fork with its parent.

Called by `cli.command_run`. docs/reference/cli.md promises the keys of the JSON.
"""

import asyncio
from argparse import Namespace
from collections.abc import Sequence

from everlog.actors.rerun.rerun import RerunOptions, RerunOutcome
from everlog.actors.rerun.rerun_comparison import CallCosts, RerunComparison, TurnPair, TurnTrace
from everlog.actors.rerun.rerun_effects import RerunDiverged
from everlog.events import Record
from everlog.events.times import MICROSECONDS
from everlog.interfaces.common import time_text
from everlog.interfaces.common.as_of import moment_of_option
from everlog.interfaces.common.bootstrap import agents_of, open_view, settings_of, system_of
from everlog.interfaces.common.error_output import complain
from everlog.interfaces.common.exits import FAILED
from everlog.interfaces.common.front_end import CommandEnvironment
from everlog.interfaces.common.server_choice import server_of
from everlog.interfaces.output import json_shapes
from everlog.store import name_of, typed

RerunObject = json_shapes.JsonObject


def rerun(args: Namespace, world: CommandEnvironment) -> int:
    """Run the command `rerun`."""
    if server_of(args) is None:
        args.runtime = "local"  # a rerun runs in this process, wherever agents run
    if args.report:
        return _report(args, world)
    first = moment_of_option(args.first, world) or args.fail("--from is missing: give a seq, from 1, or a time")
    if args.recorded and args.live_tools:
        args.fail("--live-tools cannot be given with --recorded, which runs nothing outside")
    what = RerunOptions(
        agent_id=name_of(args.name),
        from_seq=first,
        fork=args.new,
        settings=settings_of(args, world),
        turns=args.turns,
        recorded=args.recorded,
        live_tools=args.live_tools,
    )
    _check_exists(args, world)
    pairs: list[TurnPair] = []
    try:
        done = asyncio.run(_rerun(args, world, what, pairs))
    except KeyboardInterrupt as error:
        if not pairs:
            raise
        compare = f"`everlog rerun {typed(what.agent_id)} --new-name {typed(what.fork)} --report` compares the two"
        rest = "; the server reruns the others" if server_of(args) is not None else ""
        raise KeyboardInterrupt(f"the fork {what.fork!r} has the turns that were rerun{rest}; {compare}.") from error
    _show(args, done)
    if done.error is not None:
        complain(done.error)
        return FAILED
    return 0


async def _rerun(args: Namespace, world: CommandEnvironment, what: RerunOptions, pairs: list[TurnPair]) -> RerunOutcome:
    def notify(pair: TurnPair) -> None:
        pairs.append(pair)
        if not args.json:
            from everlog.interfaces.talk import rerun_page

            rerun_page.show_turn(pair)

    async with agents_of(args, world) as system:
        return await system.rerun(what, notify)


def _report(args: Namespace, world: CommandEnvironment) -> int:
    """Compare the agent with an existing fork."""
    _check_exists(args, world)
    comparison = asyncio.run(_compare(args, world))
    if args.json:
        print(json_shapes.line(comparison_shape(comparison)))
        return 0
    from everlog.interfaces.talk import rerun_page

    for pair in comparison.turns:
        rerun_page.show_turn(pair)
    rerun_page.show_end(comparison)
    return 0


def _check_exists(args: Namespace, world: CommandEnvironment) -> None:
    """Raise an error if the store or the agent does not exist, before a store is created. A server checks by itself."""
    if server_of(args) is None:
        with open_view(system_of(args, world), args.name, notify=False):
            pass


async def _compare(args: Namespace, world: CommandEnvironment) -> RerunComparison:
    async with agents_of(args, world) as system:
        fork = args.new if server_of(args) is not None else system.store.latest(args.new)
        return await system.compare(args.name, fork)


def _show(args: Namespace, done: RerunOutcome) -> None:
    if args.json:
        print(json_shapes.line(shape(done, recorded=args.recorded)))
        return
    from everlog.interfaces.talk import rerun_page

    rerun_page.show_end(done.comparison, done)


def shape(done: RerunOutcome, *, recorded: bool) -> RerunObject:
    """Return a rerun in JSON."""
    return {
        **comparison_shape(done.comparison),
        "recorded": recorded,
        "diverged": None if done.diverged is None else _divergence(done.diverged),
        "renumbered": done.renumbered,
        "left_out": _left_out_inputs(done.left_out),
        "error": None if done.error is None else str(done.error),
    }


def comparison_shape(comparison: RerunComparison) -> RerunObject:
    """Return the comparison of an agent with its fork in JSON."""
    first = comparison.diverged
    return {
        "agent": comparison.agent_id,
        "fork": comparison.fork,
        "parent_seq": comparison.cut,
        "turns": [_turn(pair) for pair in comparison.turns],
        "totals": {"then": _costs(comparison.baseline), "now": _costs(comparison.variant)},
        "answered": dict(comparison.answered),
        "first_difference": None
        if first is None
        else {
            "turn": first.turn,
            "then_seq": first.baseline_seq,
            "now_seq": first.variant_seq,
            "parts": list(first.parts),
        },
    }


def _turn(pair: TurnPair) -> RerunObject:
    return {
        "turn": pair.turn,
        "input": pair.input,
        "said": pair.said,
        "at": time_text.iso(pair.at),
        "differs": list(pair.differs),
        "then": None if pair.baseline is None else _side(pair.baseline),
        "now": None if pair.variant is None else _side(pair.variant),
    }


def _side(side: TurnTrace) -> RerunObject:
    return {
        "seq": side.seq,
        "thoughts": list(side.thoughts),
        "answers": list(side.answers),
        "calls": list(side.calls),
        "memory": list(side.memory),
        "ended": side.ended,
        **_costs(side.costs),
    }


def _costs(costs: CallCosts) -> RerunObject:
    return {
        "model_calls": costs.steps,
        "function_calls": costs.calls,
        "prompt_tokens": costs.prompt,
        "completion_tokens": costs.completion,
        "tokens": costs.tokens,
        "latency_s": costs.latency_us / MICROSECONDS,
        "cost": costs.cost,
    }


def _divergence(diverged: RerunDiverged) -> RerunObject:
    return {"seq": diverged.seq, "text": str(diverged), "difference": list(diverged.difference)}


def _left_out_inputs(records: Sequence[Record]) -> list[RerunObject]:
    return [{"seq": record.seq, "type": record.type} for record in records]
