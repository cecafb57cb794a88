"""The table of the pages that are about more than the life of one agent, and of those that have something done."""

from collections.abc import Callable

from everlog.interfaces.http.console import form_body
from everlog.interfaces.http.console.agent_frame import MomentParameters
from everlog.interfaces.http.console.operate import fork_page, jobs_page, server_pages
from everlog.interfaces.http.console.questions import library_pages, memories_page
from everlog.interfaces.http.core.keys import Role
from everlog.interfaces.http.core.routes import Handler, NoQuery, Route, RouteTable

HTML = "text/html"


def further_pages(prefix: str, agent: str) -> RouteTable:
    """Return the routes. `prefix`: path of the console; `agent`: path of an agent's page, with its name in braces."""

    def shown(path: str, handler: Handler, summary: str, query: type = NoQuery, role: Role = "read") -> Route:
        return Route("GET", path, handler, summary, role, query=query, hidden=True, media=(HTML,))

    def form(path: str, handler: Handler, summary: str, role: Role) -> Route:
        return Route(
            "POST", path, handler, summary, role, query=MomentParameters, hidden=True, media=(HTML,),
            body_media=form_body.FORM,
        )  # fmt: skip

    return (*_of_agent(agent, shown, form), *_of_all(prefix, shown))


def _of_agent(agent: str, shown: Callable[..., Route], form: Callable[..., Route]) -> RouteTable:
    return (
        shown(f"{agent}/fork", fork_page.show_forms, "Show the forms to fork and to rerun", MomentParameters),
        form(f"{agent}/fork", fork_page.save_fork, "Fork an agent from a form", "admin"),
        form(f"{agent}/rerun", fork_page.save_rerun, "Rerun an agent from a form", "admin"),
        form(f"{agent}/verify", fork_page.save_verify, "Verify an agent from a form", "read"),
        shown(f"{agent}/memories", memories_page.show_memories, "List derived memories on a page",
              memories_page.DerivedParameters),
        shown(f"{agent}/memories/{{seq}}", memories_page.show_tree, "Show the tree of a memory on a page",
              MomentParameters),
        shown(f"{agent}/archive", memories_page.show_texts, "List archival memory on a page",
              memories_page.TextsParameters),
    )  # fmt: skip


def _of_all(prefix: str, shown: Callable[..., Route]) -> RouteTable:
    return (
        shown(f"{prefix}/search", library_pages.search_fleet, "Search all agents on a page",
              library_pages.FleetFindParameters),
        shown(f"{prefix}/library", library_pages.show_library, "List shared blocks and sources on a page"),
        shown(f"{prefix}/shared/{{block}}", library_pages.show_shared_block, "Show a shared block on a page"),
        shown(f"{prefix}/sources/{{source}}", library_pages.show_source, "Show a source on a page"),
        shown(f"{prefix}/jobs", jobs_page.show_jobs, "List jobs on a page"),
        shown(f"{prefix}/jobs/{{job}}", jobs_page.show_job, "Show a job on a page"),
        shown(f"{prefix}/cluster", server_pages.show_cluster, "Show the cluster on a page"),
        shown(f"{prefix}/keys", server_pages.show_keys, "List keys on a page", role="admin"),
    )  # fmt: skip
