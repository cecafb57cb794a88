-- needs: latest
-- Tokens of the last call against the window, whether the agent was warned since the last summary, and how many tokens
-- a byte of request has cost (what the estimate before the next call is made of).
SELECT l.agent_id, l.as_of,
    coalesce(max((r.payload->'usage'->>'total')::BIGINT) FILTER (l.slot = 'reply'), 0) AS tokens,
    max((r.payload->>'window')::BIGINT) FILTER (l.slot = 'config') AS "window",
    coalesce(max((r.payload->>'pressure_fraction')::DOUBLE) FILTER (l.slot = 'config'), 0.75) AS fraction,
    coalesce(max(l.seq) FILTER (l.slot = 'warning'), 0)
        > coalesce(max(l.seq) FILTER (l.slot = 'summary'), 0) AS warned,
    max(l.seq) FILTER (l.slot = 'summary') AS summary_seq,
    max((r.payload->'usage'->>'prompt')::DOUBLE / (r.payload->>'context_bytes')::DOUBLE)
        FILTER (l.slot = 'reply') AS tokens_per_byte
FROM latest l JOIN records r ON r.agent_id = l.agent_id AND r.seq = l.seq
WHERE l.slot IN ('reply', 'config', 'warning', 'summary')
GROUP BY l.agent_id, l.as_of
