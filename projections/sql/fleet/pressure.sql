-- Tokens of the last call of each agent against its window, in its life of now; whether it was warned since the last
-- summary, in a turn that was not hidden since.
WITH latest AS (
    SELECT agent_id, life, CASE type WHEN 'model_reply' THEN 'reply' WHEN 'agent_configured' THEN 'config' ELSE 'summary'
        END AS slot, max(seq) AS seq
    FROM lived
    WHERE type IN ('model_reply', 'agent_configured', 'summary', 'summary_expanded') AND NOT erased
        AND (type <> 'model_reply' OR turn > 0)
    GROUP BY ALL
),
now AS (SELECT agent_id, max(life) AS life, arg_max(deleted, life) AS deleted FROM agents GROUP BY agent_id),
read AS (
    SELECT l.agent_id, l.life,
        max(CASE slot WHEN 'reply' THEN TRY((r.payload->>'$.usage.total')::BIGINT) END) AS tokens,
        max(CASE slot WHEN 'config' THEN TRY((r.payload->>'$.window')::BIGINT) END) AS "window",
        max(CASE slot WHEN 'config' THEN TRY((r.payload->>'$.pressure_fraction')::DOUBLE) END) AS fraction,
        max(CASE slot WHEN 'reply' THEN r.recorded_at END) AS called_at
    FROM latest l JOIN lived r ON r.agent_id = l.agent_id AND r.seq = l.seq
    WHERE r.type IN ('model_reply', 'agent_configured') AND l.slot <> 'summary'
    GROUP BY l.agent_id, l.life
),
hidden AS (
    SELECT agent_id, life, unnest(TRY((payload->'$.turns')::BIGINT[])) AS turn
    FROM lived WHERE type = 'turns_hidden' AND NOT erased
),
warnings AS (
    SELECT w.agent_id, w.life, max(w.seq) AS seq
    FROM lived w ANTI JOIN hidden h ON h.agent_id = w.agent_id AND h.life = w.life AND h.turn = w.turn
    WHERE w.type = 'system_alert' AND NOT w.erased AND contains(w.payload, '"source":"memory_pressure"')
    GROUP BY w.agent_id, w.life
),
summed AS (SELECT agent_id, life, seq FROM latest WHERE slot = 'summary')
SELECT n.agent_id, n.life, coalesce(r.tokens, 0) AS tokens, r."window",
    coalesce(r.tokens, 0) / nullif(r."window", 0) AS used, coalesce(r.fraction, 0.75) AS fraction,
    coalesce(w.seq, 0) > coalesce(s.seq, 0) AS warned, s.seq AS summary_seq, r.called_at, n.deleted
FROM now n
    LEFT JOIN read r ON r.agent_id = n.agent_id AND r.life = n.life
    LEFT JOIN warnings w ON w.agent_id = n.agent_id AND w.life = n.life
    LEFT JOIN summed s ON s.agent_id = n.agent_id AND s.life = n.life
