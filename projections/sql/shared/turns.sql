-- Turns from the rows `mine` of their records. One is open while an input of it has no later reply, or a call no result.
sums AS (
    SELECT agent_id, {key}, turn,
        min(seq) FILTER (input AND step = 0) AS opened_seq,
        arg_min(type, seq) FILTER (input AND step = 0) AS opened_by,
        min(recorded_at) AS started_at, max(recorded_at) AS ended_at,
        max(seq) FILTER (input) AS last_input, coalesce(max(seq) FILTER (type = 'model_reply'), 0) AS last_reply,
        sum(calls)::BIGINT AS calls, count(*) FILTER (type = 'function_result' AND NOT approved) AS results,
        count(*) FILTER (type = 'model_reply') AS steps, coalesce(sum(tokens), 0)::BIGINT AS tokens,
        arg_max(type, seq) FILTER (type IN ({stops})) AS stopped_by
    FROM mine GROUP BY agent_id, {key}, turn
),
turned AS (
    SELECT *,
        CASE WHEN stopped_by IS NOT NULL THEN replace(replace(replace(stopped_by, 'model_', ''), 'turn_', ''),
                'budget_exceeded', 'failed')
            WHEN last_input > last_reply OR results < calls THEN 'open'
            ELSE 'done' END AS status
    FROM sums WHERE opened_seq IS NOT NULL
)
