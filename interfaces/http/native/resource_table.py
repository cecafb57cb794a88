"""Further routes of the native API: what agents keep, derive and share, and what concerns many agents.

Used by `table`, which has the routes of runs, agents, records and memory blocks.
"""

from everlog.interfaces.http.core.routes import JSON, Route, RouteTable
from everlog.interfaces.http.core.uploads import UPLOAD_BYTES_MAX
from everlog.interfaces.http.native import archive, derived, figures, jobs, shared, sources, sql, timers, transfer
from everlog.interfaces.wire import archive as archive_shapes
from everlog.interfaces.wire import derived as derived_shapes
from everlog.interfaces.wire import jobs as job_shapes
from everlog.interfaces.wire import shared as shared_shapes
from everlog.interfaces.wire import sql as sql_shapes
from everlog.interfaces.wire import timers as timer_shapes
from everlog.interfaces.wire import transfer as transfer_shapes
from everlog.interfaces.wire.agents import Done, MomentQuery
from everlog.interfaces.wire.runs import Changed

API = "/api/v1"
IMPORT_BYTES_MAX = 16 * 1024 * 1024
AGENTS = f"{API}/agents"
AGENT = f"{AGENTS}/{{agent}}"
TEXTS = f"{AGENT}/archive"
TEXT = f"{TEXTS}/{{memory}}"
SHARED = f"{API}/blocks/{{block}}"
SOURCE = f"{API}/sources/{{source}}"

ARCHIVE: RouteTable = (
    Route("GET", TEXTS, archive.list_texts, "List archival memory", query=archive_shapes.TextsQuery,
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

TIMERS: RouteTable = (
    Route("GET", f"{AGENT}/timers", timers.list_timers, "List timers", query=MomentQuery,
          answer=timer_shapes.TimersShape),
    Route("POST", f"{AGENT}/timers", timers.set_timer, "Set a timer", "talk", body=timer_shapes.SetTimerBody,
          answer=timer_shapes.TimerShape, status=201),
    Route("DELETE", f"{AGENT}/timers/{{timer}}", timers.cancel_timer, "Cancel a timer", "talk", answer=Done),
)  # fmt: skip

DERIVED: RouteTable = (
    Route("GET", f"{AGENT}/memories", derived.list_memories, "List memories", query=derived_shapes.MemoryQuery,
          answer=derived_shapes.MemoryPage),
    Route("GET", f"{AGENT}/memories/search", derived.search_memories, "Rank memories",
          query=derived_shapes.MemorySearchQuery, answer=derived_shapes.RankedShape),
    Route("GET", f"{AGENT}/memories/{{seq}}", derived.show_memory, "Show what a memory rests on", query=MomentQuery,
          answer=derived_shapes.MemoryTreeShape),
    Route("GET", f"{AGENT}/facts", derived.list_facts, "List facts", query=derived_shapes.FactQuery,
          answer=derived_shapes.DerivedRowsShape),
    Route("POST", f"{AGENT}/facts", derived.note_fact, "Note a fact", "talk", body=derived_shapes.FactBody,
          answer=derived_shapes.NotedSeq, status=201),
    Route("POST", f"{AGENT}/facts/{{fact}}/end", derived.end_fact, "End a fact", "talk",
          body=derived_shapes.EndFactBody, answer=Changed),
    Route("GET", f"{AGENT}/plans", derived.list_plans, "List items of plans", query=derived_shapes.PlanQuery,
          answer=derived_shapes.DerivedRowsShape),
    Route("POST", f"{AGENT}/plans", derived.make_plan, "Make a plan", "talk", body=derived_shapes.PlanBody,
          answer=derived_shapes.NotedSeq, status=201),
    Route("POST", f"{AGENT}/plans/{{plan}}/changes", derived.change_plan, "Change an item of a plan", "talk",
          body=derived_shapes.PlanChangeBody, answer=derived_shapes.NotedSeq),
    Route("POST", f"{AGENT}/names", derived.name_entity, "Note another name of an entity", "talk",
          body=derived_shapes.NameBody, answer=Changed),
    Route("POST", f"{AGENT}/derivations", derived.derive_memories, "Derive memories", "talk",
          body=derived_shapes.DeriveBody, answer=derived_shapes.DerivationsShape),
    Route("POST", f"{AGENT}/withdrawals", derived.withdraw_memories, "Withdraw derived memories", "talk",
          body=derived_shapes.WithdrawBody, answer=Changed),
    Route("PUT", f"{AGENT}/generation", derived.choose_generation, "Choose a generation of derived memories", "talk",
          body=derived_shapes.GenerationBody, answer=Changed),
)  # fmt: skip

SHARED_BLOCKS: RouteTable = (
    Route("GET", f"{API}/blocks", shared.list_shared_blocks, "List shared blocks",
          answer=shared_shapes.SharedBlocksShape),
    Route("POST", f"{API}/blocks", shared.create_shared_block, "Create a shared block", "admin",
          body=shared_shapes.CreateSharedBlock, answer=shared_shapes.SharedBlockShape, status=201),
    Route("GET", SHARED, shared.show_shared_block, "Show a shared block", query=MomentQuery,
          answer=shared_shapes.SharedBlockShape),
    Route("PATCH", SHARED, shared.edit_shared_block, "Change a shared block", "talk",
          body=shared_shapes.EditSharedBlock, answer=shared_shapes.SharedBlockShape),
    Route("DELETE", SHARED, shared.delete_shared_block, "Delete a shared block", "admin",
          answer=shared_shapes.SharedBlockShape),
    Route("POST", f"{SHARED}/append", shared.append_to_shared_block, "Add a line to a shared block", "talk",
          body=shared_shapes.AppendToBlock, answer=shared_shapes.SharedBlockShape),
    Route("GET", f"{SHARED}/history", shared.show_block_history, "List the edits of a shared block",
          answer=shared_shapes.BlockHistoryShape),
    Route("PUT", f"{AGENT}/shared/{{block}}", shared.attach_shared_block, "Attach a shared block", "admin",
          body=shared_shapes.AttachBlock, answer=Changed),
    Route("DELETE", f"{AGENT}/shared/{{block}}", shared.detach_shared_block, "Detach a shared block", "admin",
          answer=Changed),
)  # fmt: skip

SOURCES: RouteTable = (
    Route("GET", f"{API}/sources", sources.list_sources, "List sources", query=shared_shapes.TimeQuery,
          answer=shared_shapes.SourcesShape),
    Route("GET", f"{SOURCE}/documents", sources.list_documents, "List the documents of a source",
          query=shared_shapes.TimeQuery, answer=shared_shapes.DocumentsShape),
    Route("POST", f"{SOURCE}/documents", sources.load_documents, "Load and remove documents", "admin",
          body=shared_shapes.LoadBody, answer=shared_shapes.LoadShape, body_max=UPLOAD_BYTES_MAX),
    Route("PUT", f"{SOURCE}/documents/{{document}}", sources.upload_document, "Upload a document", "admin",
          answer=shared_shapes.UploadedShape, statuses=(201,), body_types=sources.DOCUMENT_TYPES,
          body_max=UPLOAD_BYTES_MAX),
    Route("PUT", f"{AGENT}/sources/{{source}}", sources.attach_source, "Attach a source", "admin", answer=Changed),
    Route("DELETE", f"{AGENT}/sources/{{source}}", sources.detach_source, "Detach a source", "admin", answer=Changed),
)  # fmt: skip

FLEET: RouteTable = (
    Route("POST", f"{API}/sql", sql.run_sql, "Query all agents", body=sql_shapes.SqlBody, answer=sql_shapes.SqlAnswer,
          media=(JSON, sql.CSV, sql.ARROW)),
    Route("GET", f"{API}/cost", figures.show_cost, "Sum costs by day and model", query=sql_shapes.CostQuery,
          answer=sql_shapes.CostShape),
    Route("GET", f"{API}/cost/agents", figures.show_cost_of_agents, "Sum costs by agent",
          query=sql_shapes.CostAgentsQuery, answer=sql_shapes.CostOfAgents),
    Route("GET", f"{API}/report", figures.show_report, "Report figures of all agents", query=sql_shapes.ReportQuery,
          answer=sql_shapes.ReportShape),
    Route("GET", f"{API}/models", figures.list_models, "List models", answer=sql_shapes.ModelsShape),
    Route("GET", f"{API}/cluster", figures.show_cluster, "Show the state of the cluster",
          answer=sql_shapes.ClusterShape, operator=True),
)  # fmt: skip

TRANSFER: RouteTable = (
    Route("GET", f"{AGENT}/export", transfer.export_agent, "Export an agent",
          query=transfer_shapes.ExportQuery, media=(transfer.EXPORT,)),
    Route("POST", f"{API}/restores", transfer.restore_agent, "Restore an export", "admin",
          body_media=transfer.EXPORT, answer=transfer_shapes.RestoredShape, status=201, body_max=UPLOAD_BYTES_MAX),
    Route("POST", f"{AGENT}/imports", transfer.import_conversation, "Import a past conversation", "admin",
          body=transfer_shapes.ImportBody, answer=transfer_shapes.ImportedShape, status=201, body_max=IMPORT_BYTES_MAX),
    Route("GET", f"{AGENT}/dataset", transfer.write_dataset, "Write a data set", query=transfer_shapes.DatasetQuery,
          media=(transfer.LINES,)),
    Route("GET", f"{AGENT}/diff", transfer.compare_moments, "Compare two moments", query=transfer_shapes.DiffQuery,
          answer=transfer_shapes.DiffShape),
)  # fmt: skip

JOBS: RouteTable = (
    Route("POST", f"{AGENT}/verify", jobs.verify_agent, "Verify an agent", body=job_shapes.VerifyBody,
          answer=job_shapes.JobShape, status=202),
    Route("POST", f"{AGENT}/reruns", jobs.rerun_agent, "Rerun inputs in a fork", "admin", body=job_shapes.RerunBody,
          answer=job_shapes.JobShape, status=202),
    Route("GET", f"{AGENT}/compare", jobs.compare_fork, "Compare an agent with a fork", query=job_shapes.CompareQuery,
          answer=job_shapes.CompareShape),
    Route("POST", f"{AGENT}/erasures/plan", jobs.plan_agent_erasure, "Plan an erasure", "admin",
          body=transfer_shapes.EraseBody, answer=transfer_shapes.ErasurePlanShape),
    Route("POST", f"{AGENT}/erasures", jobs.erase_agent_records, "Erase records of an agent", "admin",
          body=transfer_shapes.EraseBody, answer=job_shapes.JobShape, status=202),
    Route("POST", f"{SHARED}/erasures", jobs.erase_block_records, "Erase edits of a shared block", "admin",
          body=transfer_shapes.EraseBody, answer=job_shapes.JobShape, status=202),
    Route("POST", f"{SOURCE}/erasures", jobs.erase_source_records, "Erase documents of a source", "admin",
          body=transfer_shapes.EraseBody, answer=job_shapes.JobShape, status=202),
    Route("GET", f"{API}/jobs", jobs.list_jobs, "List jobs", query=job_shapes.JobsQuery, answer=job_shapes.JobList),
    Route("GET", f"{API}/jobs/{{job}}", jobs.show_job, "Show a job", answer=job_shapes.JobShape),
)  # fmt: skip

RESOURCES: RouteTable = (
    *ARCHIVE, *TIMERS, *DERIVED, *SHARED_BLOCKS, *SOURCES, *FLEET, *TRANSFER, *JOBS,
)  # fmt: skip
