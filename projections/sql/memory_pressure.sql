-- needs: latest
-- Tokens of the last call compared with the window, if the agent was warned since the last summary (in a turn that was
-- not hidden since), and the tokens per byte of request, from which the next call is estimated.
WITH hidden AS (
    SELECT r.agent_id, w.as_of, unnest((r.payload->'turns')::BIGINT[]) AS turn
    FROM wanted w JOIN records r ON r.agent_id = w.agent_id AND r.seq <= w.as_of AND r.ended > w.as_of
    WHERE r.type = 'turns_hidden' AND NOT starts_with(r.payload, '{"erased":true')
),
warnings AS (
    SELECT r.agent_id, w.as_of, max(r.seq) AS seq
    FROM wanted w JOIN records r ON r.agent_id = w.agent_id AND r.seq <= w.as_of AND r.ended > w.as_of
        LEFT JOIN hidden h ON h.agent_id = r.agent_id AND h.as_of = w.as_of AND h.turn = r.turn
    WHERE r.slot = 'warning' AND h.turn IS NULL
    GROUP BY r.agent_id, w.as_of
)
SELECT l.agent_id, l.as_of,
    coalesce(max((r.payload->'usage'->>'total')::BIGINT) FILTER (l.slot = 'reply'), 0) AS tokens,
    coalesce(max((r.payload->'usage'->>'cached')::BIGINT) FILTER (l.slot = 'reply'), 0) AS cached,
    max((r.payload->>'window')::BIGINT) FILTER (l.slot = 'config') AS "window",
    coalesce(max((r.payload->>'pressure_fraction')::DOUBLE) FILTER (l.slot = 'config'), 0.75) AS fraction,
    coalesce(any_value(v.seq), 0) > coalesce(max(l.seq) FILTER (l.slot = 'summary'), 0) AS warned,
    max(l.seq) FILTER (l.slot = 'summary') AS summary_seq,
    max((r.payload->'usage'->>'prompt')::DOUBLE / (r.payload->>'context_bytes')::DOUBLE)
        FILTER (l.slot = 'reply') AS tokens_per_byte
FROM latest l JOIN records r ON r.agent_id = l.agent_id AND r.seq = l.seq
    LEFT JOIN warnings v ON v.agent_id = l.agent_id AND v.as_of = l.as_of
WHERE l.slot IN ('reply', 'config', 'warning', 'summary')
GROUP BY l.agent_id, l.as_of
