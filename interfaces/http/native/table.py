"""The table of the native API: every route, with its role and shapes."""

from everlog.interfaces.http.core.routes import EVENT_STREAM, JSON, Route, RouteTable
from everlog.interfaces.http.native import agents, approvals, memory, records, runs
from everlog.interfaces.http.native.feed_table import FEED
from everlog.interfaces.http.native.resource_table import AGENT, AGENTS, API, RESOURCES
from everlog.interfaces.wire import agents as agent_shapes
from everlog.interfaces.wire import approvals as approval_shapes
from everlog.interfaces.wire import memory as memory_shapes
from everlog.interfaces.wire import runs as run_shapes
from everlog.interfaces.wire.agents import DeleteQuery, Done, MomentQuery
from everlog.interfaces.wire.records import HttpRecord

RUN = f"{AGENT}/runs/{{run}}"
BLOCK = f"{AGENT}/blocks/{{label}}"

_BOTH = (JSON, EVENT_STREAM)

RUNS: RouteTable = (
    Route("POST", f"{AGENT}/messages", runs.send_message, "Send a message", "talk", body=run_shapes.SendMessageBody,
          answer=run_shapes.RunShape, statuses=(202,), media=_BOTH),
    Route("POST", f"{AGENT}/inputs", runs.send_input, "Run the agent without a message", "talk",
          body=run_shapes.SendInputBody, answer=run_shapes.RunShape, statuses=(202,), media=_BOTH),
    Route("GET", RUN, runs.show_run, "Show a run", answer=run_shapes.RunShape),
    Route("GET", f"{RUN}/records", runs.run_records, "List the records of a run", answer=run_shapes.RunRecordsShape),
    Route("GET", f"{RUN}/stream", runs.stream_run, "Stream a run, or resume its stream", query=runs.RunPosition,
          media=(EVENT_STREAM,)),
    Route("POST", f"{RUN}/cancel", runs.cancel_run, "Cancel a run", "talk", answer=run_shapes.TurnNumbers),
    Route("POST", f"{AGENT}/cancel", runs.cancel_runs, "Cancel what the agent does", "talk",
          body=run_shapes.CancelBody, answer=run_shapes.TurnNumbers),
    Route("POST", f"{AGENT}/retry", runs.retry_run, "Send the newest message again", "talk",
          body=run_shapes.RunOptionsBody, answer=run_shapes.RunShape, statuses=(202,), media=_BOTH),
    Route("POST", f"{AGENT}/resume", runs.resume_runs, "Finish unfinished turns", "talk",
          body=run_shapes.RunOptionsBody, answer=run_shapes.RunShape, statuses=(202,), media=_BOTH),
    Route("POST", f"{AGENT}/approvals/{{call}}", approvals.decide, "Decide a call that waits for an approval", "talk",
          body=approval_shapes.DecisionBody, answer=run_shapes.RunShape, statuses=(202,), media=_BOTH),
    Route("POST", f"{AGENT}/undo", runs.undo_turns, "Exclude the newest turns from the context", "talk",
          body=run_shapes.UndoBody, answer=run_shapes.TurnNumbers),
    Route("POST", f"{AGENT}/thought", runs.rewrite_thought, "Replace the newest thought", "talk",
          body=run_shapes.RewriteThoughtBody, answer=run_shapes.Changed),
    Route("POST", f"{AGENT}/summarize", runs.summarize, "Summarize the oldest part of the context", "talk",
          answer=run_shapes.Changed),
    Route("POST", f"{AGENT}/undo_summary", runs.undo_summary, "Undo the newest summary", "talk",
          answer=run_shapes.Changed),
)  # fmt: skip

OF_AGENTS: RouteTable = (
    Route("GET", AGENTS, agents.list_all, "List agents", query=agent_shapes.AgentQuery, answer=agent_shapes.AgentPage),
    Route("POST", AGENTS, agents.create, "Create an agent", "admin", body=agent_shapes.CreateAgentBody,
          answer=agent_shapes.AgentReport, statuses=(201,)),
    Route("GET", AGENT, agents.show, "Show an agent", query=MomentQuery, answer=agent_shapes.AgentShape),
    Route("PATCH", AGENT, agents.configure, "Change settings", "admin", body=agent_shapes.ConfigureBody,
          answer=agent_shapes.AgentReport),
    Route("DELETE", AGENT, agents.delete, "Delete an agent", "admin", query=DeleteQuery,
          answer=agent_shapes.DeletedAgents),
    Route("POST", f"{AGENT}/forks", agents.fork, "Fork an agent", "admin", body=agent_shapes.ForkBody,
          answer=agent_shapes.ForkShape, status=201),
    Route("POST", f"{AGENT}/move", agents.move, "Move an agent", "admin", body=agent_shapes.MoveBody, answer=Done),
    Route("POST", f"{AGENT}/rename", agents.rename, "Give an agent another name", "admin",
          body=agent_shapes.RenameBody, answer=Done),
    Route("POST", f"{AGENT}/unload", agents.unload, "Unload an agent from memory", "admin", answer=Done),
)  # fmt: skip

READING: RouteTable = (
    Route("GET", f"{API}/approvals", approvals.show_approvals, "List calls that wait for an approval",
          query=approval_shapes.ApprovalQuery, answer=approval_shapes.ApprovalPage),
    Route("GET", f"{AGENT}/records", records.list_records, "List records", query=memory_shapes.RecordQuery,
          answer=memory_shapes.RecordPage),
    Route("GET", f"{AGENT}/records/{{seq}}", records.show_record, "Show a record", answer=HttpRecord),
    Route("GET", f"{AGENT}/stream", records.stream_records, "Stream records as they are written",
          query=memory_shapes.StreamQuery, media=(EVENT_STREAM,)),
    Route("GET", f"{AGENT}/context", memory.show_context, "Show what the model sees", query=MomentQuery,
          answer=memory_shapes.ContextShape),
    Route("GET", f"{AGENT}/pressure", memory.show_pressure, "Show how full the context window is", query=MomentQuery,
          answer=memory_shapes.PressureShape),
    Route("GET", f"{AGENT}/projections/{{projection}}", memory.show_rows, "Show the rows of a projection",
          query=MomentQuery, answer=memory_shapes.RowsShape),
)  # fmt: skip

BLOCKS: RouteTable = (
    Route("GET", f"{AGENT}/blocks", memory.list_blocks, "List memory blocks", query=MomentQuery,
          answer=memory_shapes.BlocksShape),
    Route("POST", f"{AGENT}/blocks", memory.add_block, "Add a memory block", "talk", body=memory_shapes.AddBlockBody,
          answer=Done, status=201),
    Route("GET", BLOCK, memory.show_block, "Show a memory block", query=MomentQuery, answer=memory_shapes.BlockShape),
    Route("PATCH", BLOCK, memory.edit_block, "Change a memory block", "talk", body=memory_shapes.EditBlockBody,
          answer=run_shapes.Changed),
    Route("DELETE", BLOCK, memory.remove_block, "Remove a memory block", "talk", answer=Done),
)  # fmt: skip

NATIVE: RouteTable = (*RUNS, *OF_AGENTS, *READING, *BLOCKS, *RESOURCES, *FEED)
"""All routes of the native API; those that are asked most often come first."""
