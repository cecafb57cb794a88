"""The table of the console: every page, with the role that it needs."""

from starlette.responses import Response

from everlog.interfaces.http.console import (
    agent_pages,
    edit_pages,
    form_body,
    memory_pages,
    preferences_page,
    record_pages,
    session_pages,
    settings_pages,
    sql_page,
    static_files,
)
from everlog.interfaces.http.console.agent_frame import MomentParameters
from everlog.interfaces.http.console.agent_life import LifeCache
from everlog.interfaces.http.console.agents_page import FleetGlance, FleetParameters, agents_page
from everlog.interfaces.http.console.life_pages import JumpParameters, PictureParameters, life_pages
from everlog.interfaces.http.console.operate.page_table import further_pages
from everlog.interfaces.http.console.page_response import redirect
from everlog.interfaces.http.console.questions import approvals_page, compare_page, costs_page, search_page, words_page
from everlog.interfaces.http.console.surface import PREFIX
from everlog.interfaces.http.core.routes import JSON, Handler, HttpCall, Route, RouteTable
from everlog.interfaces.wire.approvals import ApprovalQuery

HTML = "text/html"
AGENT_PAGE = f"{PREFIX}/a/{{agent}}"
SIGN_IN = f"{PREFIX}/sign-in"


def console_pages() -> RouteTable:
    """Return the routes of the console. What they keep between requests is a copy of what the logs say."""

    async def show_front(_: HttpCall) -> Response:
        """Go to the list of agents."""
        return redirect(f"{PREFIX}/agents")

    lives, agents = life_pages(LifeCache()), agents_page(FleetGlance())

    def shown(path: str, handler: Handler, summary: str, query: type = MomentParameters, media: str = HTML) -> Route:
        return Route("GET", path, handler, summary, query=query, hidden=True, media=(media,))

    return (
        *further_pages(PREFIX, AGENT_PAGE),
        shown(PREFIX, show_front, "Open the console"),
        shown(f"{PREFIX}/agents", agents, "List agents on a page", FleetParameters),
        shown(f"{PREFIX}/sql", sql_page.show_sql, "Ask all agents with SQL on a page", sql_page.SqlParameters),
        shown(f"{PREFIX}/sql/export", sql_page.export_sql, "Export the rows of a query", sql_page.ExportParameters,
              "text/csv"),
        shown(f"{PREFIX}/compare", compare_page.show_compare, "Compare two moments on a page",
              compare_page.CompareParameters),
        shown(f"{PREFIX}/costs", costs_page.show_costs, "Show what agents cost on a page", costs_page.CostsParameters),
        shown(f"{PREFIX}/approvals", approvals_page.show_approvals, "List calls that wait for a person on a page",
              ApprovalQuery),
        Route("POST", f"{AGENT_PAGE}/approvals/{{call}}", approvals_page.save_decision,
              "Decide a call that waits from a form", "talk", query=MomentParameters, hidden=True, media=(HTML,),
              body_media=form_body.FORM),
        shown(AGENT_PAGE, agent_pages.show_overview, "Show an agent at a moment", agent_pages.TalkParameters),
        shown(f"{AGENT_PAGE}/chat", agent_pages.show_chat, "Chat with an agent", agent_pages.TalkParameters),
        shown(f"{AGENT_PAGE}/context", agent_pages.show_context, "Show the context on a page"),
        shown(f"{AGENT_PAGE}/memory", memory_pages.show_memory, "Show core memory on a page"),
        shown(f"{AGENT_PAGE}/memory/{{label}}", memory_pages.show_block, "Show a block and its edits on a page",
              memory_pages.BlameParameters),
        shown(f"{AGENT_PAGE}/memory/{{label}}/edit", edit_pages.show_edit, "Show the form to edit a block"),
        Route("POST", f"{AGENT_PAGE}/memory/{{label}}/edit", edit_pages.save_edit, "Save a block from a form", "talk",
              query=MomentParameters, hidden=True, media=(HTML,), body_media=form_body.FORM),
        shown(f"{AGENT_PAGE}/records", record_pages.show_records, "List records on a page",
              record_pages.RecordParameters),
        shown(f"{AGENT_PAGE}/records/{{seq}}", record_pages.show_record, "Show a record on a page"),
        shown(f"{AGENT_PAGE}/words/{{seq}}", words_page.show_words, "Show how words came about on a page"),
        shown(f"{AGENT_PAGE}/search", search_page.show_search, "Search an agent on a page",
              search_page.FindParameters),
        shown(f"{AGENT_PAGE}/settings", settings_pages.show_settings, "Show settings on a page"),
        Route("POST", f"{AGENT_PAGE}/settings", settings_pages.save_settings, "Save settings from a form", "admin",
              query=MomentParameters, hidden=True, media=(HTML,), body_media=form_body.FORM),
        shown(f"{AGENT_PAGE}/life.svg", lives.picture, "Draw the life of an agent", PictureParameters,
              "image/svg+xml"),
        shown(f"{AGENT_PAGE}/life.json", lives.outline, "List the landmarks of a life", media=JSON),
        shown(f"{AGENT_PAGE}/jump", lives.jump, "Jump to a landmark", JumpParameters),
        Route("GET", f"{PREFIX}/preferences", preferences_page.show_preferences, "Show the form of the choices",
              query=preferences_page.PreferencesQuery, is_open=True, hidden=True, media=(HTML,)),
        Route("POST", f"{PREFIX}/preferences", preferences_page.save_preferences, "Keep the choices of the form",
              is_open=True, hidden=True, media=(HTML,), body_media=form_body.FORM),
        Route("GET", SIGN_IN, session_pages.show_sign_in, "Show the form to sign in",
              query=session_pages.SignInQuery, is_open=True, hidden=True, media=(HTML,)),
        Route("POST", SIGN_IN, session_pages.sign_in, "Sign in", is_open=True, hidden=True, media=(HTML,),
              body_media=form_body.FORM),
        Route("POST", "/console/sign-out", session_pages.sign_out, "Sign out", is_open=True, hidden=True,
              media=(HTML,), body_media=form_body.FORM),
        Route("GET", "/console/static/{digest}/{file}", static_files.show_file, "Load a script or a style",
              is_open=True, hidden=True, media=("text/javascript", "text/css", "image/svg+xml")),
    )  # fmt: skip
