"""Further routes of the native API: what agents keep, derive and share, and what concerns many agents.

Used by `table`, which has the routes of runs, agents, records and memory blocks.
"""

from everlog.interfaces.http.core.routes import Route, RouteTable
from everlog.interfaces.http.native import archive
from everlog.interfaces.wire import archive as archive_shapes
from everlog.interfaces.wire.agents import Done, MomentQuery

API = "/api/v1"
AGENTS = f"{API}/agents"
AGENT = f"{AGENTS}/{{agent}}"
TEXTS = f"{AGENT}/archive"
TEXT = f"{TEXTS}/{{memory}}"

ARCHIVE: RouteTable = (
    Route("GET", TEXTS, archive.list_texts, "List archival memory", query=archive_shapes.ArchiveQuery,
          answer=archive_shapes.HitPage),
    Route("POST", TEXTS, archive.insert_text, "Insert a text into archival memory", "talk",
          body=archive_shapes.InsertText, answer=archive_shapes.StoredText, status=201),
    Route("POST", f"{TEXTS}/batch", archive.insert_texts, "Insert many texts into archival memory", "talk",
          body=archive_shapes.InsertTexts, answer=archive_shapes.StoredTexts, status=201),
    Route("GET", TEXT, archive.show_text, "Show a text of archival memory", query=MomentQuery,
          answer=archive_shapes.HitShape),
    Route("PUT", TEXT, archive.update_text, "Replace a text of archival memory", "talk",
          body=archive_shapes.UpdateText, answer=Done),
    Route("DELETE", TEXT, archive.delete_text, "Delete a text from archival memory", "talk", answer=Done),
    Route("GET", f"{AGENT}/search", archive.search_agent, "Search an agent", query=archive_shapes.SearchQuery,
          answer=archive_shapes.HitPage),
    Route("GET", f"{API}/search", archive.search_agents, "Search all agents", query=archive_shapes.FleetSearchQuery,
          answer=archive_shapes.HitPage),
)  # fmt: skip

RESOURCES: RouteTable = (*ARCHIVE,)
