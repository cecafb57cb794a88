-- From an input until the agent is idle.
WITH mine AS (
    SELECT r.*, w.as_of,
        r.type IN ({inputs})
            AND NOT coalesce((r.payload->>'imported')::BOOLEAN, false)
            AND NOT starts_with(r.payload, '{"erased":true') AS input,
        CASE WHEN r.type = 'model_reply' THEN coalesce(json_array_length(r.payload, '$.calls'), 0) ELSE 0 END AS calls,
        contains(r.payload, '"approval":') AS approved,
        CASE WHEN r.type = 'model_reply' THEN (r.payload->'usage'->>'total')::BIGINT END AS tokens
    FROM wanted w JOIN records r ON r.agent_id = w.agent_id AND r.seq <= w.as_of AND r.ended > w.as_of
    WHERE r.turn > 0 AND r.type IN ({inputs}, {stops}, 'model_reply', 'function_result')
),
{turns by as_of}
SELECT agent_id, as_of, turn, opened_seq, opened_by, started_at, ended_at, steps, calls, tokens, status FROM turned
