"""Describe the console as a surface of the server: its path, and its pages for requests that were refused."""

from collections.abc import Mapping
from urllib.parse import urlsplit

from starlette.requests import Request
from starlette.responses import Response

from everlog.interfaces.http.console.page_response import page
from everlog.interfaces.http.core.refusals import Refusal
from everlog.interfaces.http.core.surfaces import Surface
from everlog.interfaces.wire.problems import Problem

PREFIX = "/console"
TITLES = {
    400: "This address says something that cannot be",
    403: "Your key does not allow this",
    404: "There is nothing here",
    405: "This page cannot be used in that way",
    409: "It was decided before",
    421: "This server has another name",
    429: "Too many requests",
    503: "Not possible right now",
}
CURES = {
    400: "Go back, or correct the address.",
    403: "Sign in with a key that has the role which the sentence above names.",
    404: "It may have been deleted, or belong to others. The list of agents has all that your key sees.",
    409: "The list of approvals has the calls that still wait.",
    421: "Open the console by the name under which the server runs.",
    429: "Wait a few seconds and load the page again.",
    503: "Wait a few seconds and load the page again. What was acknowledged is safe.",
}


def own_path(given: str) -> str:
    """Return a path of the console to go to next; its first page if the text is anything else."""
    parts = urlsplit(given)
    inside = parts.path == PREFIX or parts.path.startswith(f"{PREFIX}/")
    if parts.scheme or parts.netloc or not inside or not given.isprintable() or "\\" in given:
        return PREFIX
    return given


def refused_page(problem: Problem, request: Request, headers: Mapping[str, str]) -> Response:
    """Return the page for a problem: the form to sign in, or a sentence with the cure."""
    if problem.status == 401:
        query = f"?{request.url.query}" if request.url.query else ""
        came = "everlog-" in request.headers.get("cookie", "")
        values = {
            "next": own_path(request.scope["path"] + query) if request.method == "GET" else PREFIX,
            "message": "Your key has expired, was revoked, or is of another store." if came else "",
        }
        # Without the challenge: a browser would answer it with a dialog of its own.
        return page(request, "sign_in.html", values, status=401)
    title = TITLES.get(problem.status, "The server could not make this page")
    cure = CURES.get(problem.status, "Load the page again. If it fails again, the server's log has the reason.")
    values = {"title": title, "message": problem.message, "cure": cure, "code": problem.code}
    return page(request, "problem.html", values, status=problem.status, headers=headers)


def _no_page(_method: str, _path: str) -> Refusal:
    return Refusal(404, "not-found", "The console has no page at this address.")


CONSOLE_SURFACE = Surface(PREFIX, unknown=_no_page, takes_unknown=True, page_of=refused_page)
