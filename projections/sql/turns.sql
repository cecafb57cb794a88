-- From an input until the agent is idle. A turn is open while an input of it has no later reply, or a call no result.
WITH mine AS (
    SELECT r.*, w.as_of,
        r.type IN ('user_message', 'user_login', 'heartbeat', 'system_alert')
            AND NOT coalesce((r.payload->>'imported')::BOOLEAN, false)
            AND NOT starts_with(r.payload, '{"erased":true') AS input,
        CASE WHEN r.type = 'model_reply' THEN coalesce(json_array_length(r.payload, '$.calls'), 0) ELSE 0 END AS calls
    FROM wanted w JOIN records r ON r.agent_id = w.agent_id AND r.seq <= w.as_of AND r.ended > w.as_of
    WHERE r.turn > 0 AND r.type IN ('user_message', 'user_login', 'heartbeat', 'system_alert', 'model_reply',
        'function_result', 'model_failed', 'turn_cancelled', 'turn_abandoned', 'budget_exceeded')
),
sums AS (
    SELECT agent_id, as_of, turn,
        min(seq) FILTER (input AND step = 0) AS opened_seq,
        arg_min(type, seq) FILTER (input AND step = 0) AS opened_by,
        min(recorded_at) AS started_at, max(recorded_at) AS ended_at,
        max(seq) FILTER (input) AS last_input, coalesce(max(seq) FILTER (type = 'model_reply'), 0) AS last_reply,
        coalesce(sum(calls), 0) AS calls, count(*) FILTER (type = 'function_result') AS results,
        count(*) FILTER (type = 'model_reply') AS steps,
        coalesce(sum((payload->'usage'->>'total')::BIGINT) FILTER (type = 'model_reply'), 0) AS tokens,
        arg_max(type, seq) FILTER (type IN ('model_failed', 'turn_cancelled', 'turn_abandoned', 'budget_exceeded'))
            AS stopped_by
    FROM mine GROUP BY agent_id, as_of, turn
)
SELECT agent_id, as_of, turn, opened_seq, opened_by, started_at, ended_at, steps, calls::BIGINT AS calls,
    tokens::BIGINT AS tokens,
    CASE WHEN stopped_by IS NOT NULL THEN replace(replace(replace(stopped_by, 'model_', ''), 'turn_', ''),
            'budget_exceeded', 'failed')
        WHEN last_input > last_reply OR results < calls THEN 'open'
        ELSE 'done' END AS status
FROM sums WHERE opened_seq IS NOT NULL
