"""Arguments of `everlog replay`, and what the help says of it. Imports nothing heavy."""

import argparse

from everlog.interfaces.common import argument_values

REPLAY = """\
On a terminal: a console with the context gauge, core memory with what changes
in it, and everything that happens, at the pace of then. Space pauses, arrows
step, n s e f go to the next turn, summary, memory edit or failure, F forks the
agent here, ? shows all keys. Pauses of then are cut to two seconds. Elsewhere
the story is printed at once."""


def watching(parser: argparse.ArgumentParser) -> None:
    """Which part of the story, and how it is watched."""
    parser.add_argument("--speed", metavar="N", type=_speed, default=1.0, help="how many times as fast, as 8x (1x)")
    parser.add_argument(
        "--from", dest="first", metavar="SEQ", type=argument_values.seq, default=1, help="first seq (1)"
    )
    parser.add_argument(
        "--to", dest="last", metavar="SEQ", type=argument_values.seq, help="last seq, inclusive (the head)"
    )
    parser.add_argument("-f", "--follow", action="store_true", help="go on with what comes, until q or Ctrl-C")


def _speed(text: str) -> float:
    """8, 8x or 0.5x."""
    from everlog.interfaces.replay_console.playback import SPEED_MAX, SPEED_MIN

    try:
        speed = float(text.lower().removesuffix("x"))
    except ValueError:
        speed = 0.0
    if not SPEED_MIN <= speed <= SPEED_MAX:
        raise argparse.ArgumentTypeError(f"{text[:40]!r} is not a speed from {SPEED_MIN:g}x to {SPEED_MAX:g}x, as 8x")
    return speed
