"""Arguments about models, and what the help says of them. Imports nothing heavy."""

import argparse

from everlog.interfaces.common.command_options import CommandSpec, json

MODELS = """\
Those of models.toml (EVERLOG_MODELS, else in the store), and those of endpoints
that were asked what they can do. `everlog models test NAME` asks: a few small
requests to the endpoint, or a look into the file. What is found is kept in the
store, and agents that get this model from then on are set up by it."""


def asking(group: "argparse._ArgumentGroup") -> None:
    """How a model is asked."""
    group.add_argument(
        "--no-probe", action="store_true", help="do not ask an endpoint that nobody knows what it can do"
    )


def listing(parser: argparse.ArgumentParser) -> None:
    """Which model, and where."""
    parser.add_argument("action", metavar="test", nargs="?", choices=("test",), help="ask what a model can do")
    parser.add_argument("model", metavar="MODEL", nargs="?", help="the model that is tested")
    parser.add_argument("--base-url", metavar="URL", help="where it is served, if models.toml does not say so")


COMMANDS = (
    CommandSpec("models", "manage.models_command:models", "list models and what they can do, or test one",
            "everlog models test qwen3 --base-url http://127.0.0.1:8000/v1", (listing, json), MODELS),
)  # fmt: skip
