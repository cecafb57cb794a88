"""`everlog console`: open the web console of the store in a browser, and serve it if no server answers at its port.

Called by `cli.command_run`. What the server needs beyond a plain installation is imported by `serve`, not here.
"""

import os
import sys
import webbrowser
from argparse import Namespace
from urllib.parse import urlencode

import httpx2

from everlog.actors.ports.real_clock import secret
from everlog.events.times import MICROSECONDS
from everlog.interfaces.common.front_end import CommandEnvironment
from everlog.interfaces.common.open_store import root_of, store_of
from everlog.interfaces.http import serve_command
from everlog.interfaces.http.core.keys import PREFIX, KeyRing
from everlog.interfaces.output import json_shapes

LINK_S = 300
"""Time for which a one-time link works, seconds."""
ANSWER_S = 2.0
"""Time in which a server that runs answers, seconds."""


def console(args: Namespace, world: CommandEnvironment) -> int:
    """Run the command `console`: until a signal ends the server, if it had to start one."""
    store_of(args, world, create=True)
    running = f"http://127.0.0.1:{args.port}"
    if args.port and answers(running):
        open_at(args, link(args, world, running))
        return 0
    return serve_command.serve(args, world, announce=lambda address: open_at(args, link(args, world, address)))


def answers(address: str) -> bool:
    """Return True if a server of everlog answers at an address."""
    try:
        found = httpx2.get(f"{address}/livez", timeout=ANSWER_S, trust_env=False)
        return found.status_code == 200 and found.json() == {"status": "ok"}
    except (httpx2.HTTPError, ValueError):
        return False


def link(args: Namespace, world: CommandEnvironment, address: str) -> str:
    """Return the address of the console; if the store has keys, as a link that signs one browser in, once."""
    ring = KeyRing(root_of(args))
    if not ring.all():
        return f"{address}/console"
    now, key = world.clock.now(), f"{PREFIX}{secret()}"
    ring.make_link(key=key, key_id=world.ids.new(now), now=now, expires_at=now + LINK_S * MICROSECONDS)
    return f"{address}/console/sign-in?{urlencode({'link': key})}"


def open_at(args: Namespace, address: str) -> None:
    """Print the address of the console, and show it in the browser of this machine if there is one."""
    if args.json:
        print(json_shapes.line({"address": address, "store": str(root_of(args))}), flush=True)
        return
    print(f"The console: {address}", flush=True)
    if "/sign-in?" in address:
        print(f"The link works once, within {LINK_S // 60} minutes.", flush=True)
    has_screen = sys.platform == "darwin" or "DISPLAY" in os.environ or "WAYLAND_DISPLAY" in os.environ
    if has_screen and not args.no_browser:
        webbrowser.open(address)
