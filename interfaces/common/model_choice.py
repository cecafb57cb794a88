"""Resolve the model that a command names: its name in the log, its address, and, on first use, its abilities.

Used by `bootstrap` and `everlog models`.
"""

from argparse import Namespace
from pathlib import Path

from everlog.actors.models.model_catalogue import catalogue_of, descriptions_of, request_url, save_probe
from everlog.actors.models.model_types import ModelAddress, ProbeFindings, is_gguf, is_rule_based, same_url
from everlog.actors.models.probe import is_openai
from everlog.events import BadInput
from everlog.interfaces.common.error_output import complain
from everlog.interfaces.common.front_end import CommandEnvironment


def chosen_model(args: Namespace, world: CommandEnvironment, root: Path) -> str | None:
    """Return the name that the log will have for --model; None if it was not given.

    If the name contains its endpoint (ENDPOINT/MODEL), the address of that endpoint is written to `args.base_url`. An
    endpoint of which nothing is known is probed; with --no-probe its address is only stored. Both are known afterwards
    to every command, as the model's name is. Raises BadInput for a file that cannot be run, and for a failed probe:
    the log would keep a mistyped name for ever.
    """
    name: str | None = args.model
    if name is None or is_rule_based(name):
        return name
    if is_gguf(name):
        from everlog.actors.models import gguf_model

        gguf_model.check_extra_installed()
        path = gguf_model.path_of(name)
        gguf_model.header(path)
        return str(path)
    place = model_address(name, args.base_url, root)
    if place.url:
        # `bootstrap.agents_of` reads `args.base_url`, so commands make their settings before they open agents.
        args.base_url = place.url
    url = request_url(place.url)
    if is_known(place.name, url, root):
        return place.name
    if getattr(args, "no_probe", False):
        if place.url:  # otherwise OPENAI_BASE_URL decides at each call, and nothing was said that could be lost
            save_probe(root, ProbeFindings(url=url, model=place.name, at=0))
    elif world.probe is not None:
        found = probe_and_save(place.name, url, world, root)
        if found.fault:
            raise BadInput(
                f"Probing {place.name!r} failed: {found.fault} Nothing was changed. Correct --model or --base-url, or "
                "use the model without a test: --no-probe."
            )
    return place.name


def model_address(name: str, base_url: str | None, root: Path) -> ModelAddress:
    """Return where a model is served. Raises BadInput if --base-url contradicts the model's description."""
    place = catalogue_of(root).place(name, base_url or "")
    if base_url and place.endpoint and not same_url(place.url, base_url):
        raise BadInput(
            f"--base-url is {base_url}, but {descriptions_of(root)} describes {name!r} at the endpoint "
            f"{place.endpoint!r}, {place.url}. Leave --base-url out, or correct the file."
        )
    return place


def is_known(name: str, url: str, root: Path) -> bool:
    """Return True if the abilities of a model at an address are known, so that it needs no probe."""
    catalogue = catalogue_of(root)
    entry = catalogue.models.get(name)
    if is_openai(url) or (entry is not None and entry.calling is not None):
        return True
    return catalogue.found_of(name, url) is not None or catalogue.abilities(name, url).preferred_format is not None


def probe_and_save(name: str, url: str, world: CommandEnvironment, root: Path) -> ProbeFindings:
    """Probe what a model can do at an endpoint. The findings are saved in the store, unless the probe failed."""
    assert world.probe is not None
    complain(f"probing {url}: what can {name!r} do? The result is saved (--no-probe skips this)")
    found = world.probe(url, name, catalogue_of(root).key_of(url))
    if not found.fault:
        save_probe(root, found)
    return found
