-- From an input until the agent is idle. A turn is open while an input of it has no later reply, or a call no result.
WITH mine AS (
    SELECT agent_id, life, turn, step, seq, type, recorded_at,
        type IN ('user_message', 'user_login', 'heartbeat', 'system_alert') AND NOT erased
            AND NOT coalesce(TRY((payload->>'$.imported')::BOOLEAN), false) AS input,
        CASE type WHEN 'model_reply' THEN coalesce(TRY(json_array_length(payload, '$.calls')), 0) ELSE 0 END AS calls,
        CASE type WHEN 'model_reply' THEN f_tokens END AS tokens
    FROM lived
    WHERE turn > 0 AND type IN ('user_message', 'user_login', 'heartbeat', 'system_alert', 'model_reply',
        'function_result', 'model_failed', 'turn_cancelled', 'turn_abandoned', 'budget_exceeded')
),
sums AS (
    SELECT agent_id, life, turn,
        min(seq) FILTER (input AND step = 0) AS opened_seq,
        arg_min(type, seq) FILTER (input AND step = 0) AS opened_by,
        min(recorded_at) AS started_at, max(recorded_at) AS ended_at,
        max(seq) FILTER (input) AS last_input, coalesce(max(seq) FILTER (type = 'model_reply'), 0) AS last_reply,
        sum(calls)::BIGINT AS calls, count(*) FILTER (type = 'function_result') AS results,
        count(*) FILTER (type = 'model_reply') AS steps, coalesce(sum(tokens), 0)::BIGINT AS tokens,
        arg_max(type, seq) FILTER (type IN ('model_failed', 'turn_cancelled', 'turn_abandoned', 'budget_exceeded'))
            AS stopped_by
    FROM mine GROUP BY agent_id, life, turn
)
SELECT agent_id, life, turn, opened_seq, opened_by, started_at, ended_at,
    epoch_us(ended_at) - epoch_us(started_at) AS duration_us, steps, calls, tokens,
    CASE WHEN stopped_by IS NOT NULL THEN replace(replace(replace(stopped_by, 'model_', ''), 'turn_', ''),
            'budget_exceeded', 'failed')
        WHEN last_input > last_reply OR results < calls THEN 'open'
        ELSE 'done' END AS status
FROM sums WHERE opened_seq IS NOT NULL
