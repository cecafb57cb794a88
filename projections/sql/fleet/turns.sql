-- One row for each turn: from an input until the agent is idle.
WITH mine AS (
    SELECT agent_id, life, turn, step, seq, type, recorded_at,
        type IN ({inputs}) AND NOT erased AND coalesce(f_owed, 1) <> 0 AS input,
        CASE type WHEN 'model_reply' THEN coalesce(f_owed, 0) ELSE 0 END AS calls,
        coalesce(f_owed, -1) = 0 AS approved,
        CASE type WHEN 'model_reply' THEN f_tokens END AS tokens
    FROM lived
    WHERE turn > 0 AND type IN ({inputs}, {stops}, 'model_reply', 'function_result')
),
{turns by life}
SELECT agent_id, life, turn, opened_seq, opened_by, started_at, ended_at,
    epoch_us(ended_at) - epoch_us(started_at) AS duration_us, steps, calls, tokens, status
FROM turned
