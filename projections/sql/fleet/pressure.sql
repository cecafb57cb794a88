-- Tokens of each agent's last call compared with its window, in its current incarnation, and if it was warned since the
-- last summary, in a turn that was not hidden since. Records that a fork reads from its ancestors count as its own.
WITH now AS (
    SELECT agent_id, max(life) AS life FROM lived WHERE NOT starts_with(agent_id, 'source:') AND NOT starts_with(agent_id, 'block:') GROUP BY agent_id
),
last AS (
    SELECT agent_id, life,
        arg_max(coalesce(f_tokens, 0), seq) FILTER (type = 'model_reply') AS tokens,
        arg_max(recorded_at, seq) FILTER (type = 'model_reply') AS recorded_at,
        arg_max_null(f_window, seq) FILTER (type = 'agent_configured') AS "window",
        arg_max(coalesce(f_fraction, 0.75), seq) FILTER (type = 'agent_configured') AS fraction,
        max(seq) FILTER (type IN ('summary', 'summary_expanded')) AS summary_seq
    FROM read_through
    WHERE type IN ('model_reply', 'agent_configured', 'summary', 'summary_expanded') AND NOT erased
        AND (type <> 'model_reply' OR turn > 0)
    GROUP BY agent_id, life
),
ended AS (SELECT DISTINCT agent_id, life FROM lived WHERE type = 'agent_deleted'),
hidden AS (
    SELECT agent_id, life, unnest(TRY((payload->'$.turns')::BIGINT[])) AS turn
    FROM read_through WHERE type = 'turns_hidden' AND NOT erased
),
warnings AS (
    SELECT w.agent_id, w.life, max(w.seq) AS seq
    FROM read_through w ANTI JOIN hidden h ON h.agent_id = w.agent_id AND h.life = w.life AND h.turn = w.turn
    WHERE w.type = 'system_alert' AND NOT w.erased AND w.f_kind = 'memory_pressure'
    GROUP BY w.agent_id, w.life
)
SELECT n.agent_id, n.life, coalesce(l.tokens, 0) AS tokens, l."window",
    coalesce(l.tokens, 0) / nullif(l."window", 0) AS used, coalesce(l.fraction, 0.75) AS fraction,
    coalesce(w.seq, 0) > coalesce(l.summary_seq, 0) AS warned, l.summary_seq, l.recorded_at,
    e.agent_id IS NOT NULL AS deleted
FROM now n
    LEFT JOIN last l ON l.agent_id = n.agent_id AND l.life = n.life
    LEFT JOIN warnings w ON w.agent_id = n.agent_id AND w.life = n.life
    LEFT JOIN ended e ON e.agent_id = n.agent_id AND e.life = n.life
