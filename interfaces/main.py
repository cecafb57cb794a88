"""The `everlog` command: reads the arguments and calls the interface that answers them. Decides nothing itself."""

import argparse
from collections.abc import Sequence

__all__ = ["main"]


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line and return the exit status: 0 when what was asked has been done."""
    parser = argparse.ArgumentParser(prog="everlog", description="Agents whose whole state is their log of events.")
    parser.parse_known_args(argv)
    parser.print_help()
    return 0
