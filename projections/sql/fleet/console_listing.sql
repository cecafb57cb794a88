-- One row for each agent in its current incarnation, for the console: the columns of `listing` and those of `pressure`
-- that the console shows, its turns that are not ended, and its failures after `since`, a time in microseconds. It says
-- what these views say, which a law checks, in one pass over the records of all agents where they take four.
WITH seen AS (
    SELECT agent_id, life, count(*) AS events,
        count(*) FILTER (type IN ('user_message', 'message_sent') AND NOT erased) AS messages,
        max(seq) AS head, max(turn) AS turns, epoch_us(max(recorded_at)) AS last_active,
        coalesce(bool_or(type = 'agent_deleted'), false) AS deleted,
        arg_max(coalesce(f_tokens, 0), seq) FILTER (type = 'model_reply' AND turn > 0 AND NOT erased) AS tokens,
        arg_max_null(f_window, seq) FILTER (type = 'agent_configured' AND NOT erased) AS "window",
        arg_max(coalesce(f_fraction, 0.75), seq) FILTER (type = 'agent_configured' AND NOT erased) AS fraction,
        max(seq) FILTER (type IN ('summary', 'summary_expanded') AND NOT erased) AS summary_seq
    FROM read_through WHERE NOT starts_with(agent_id, 'source:') AND NOT starts_with(agent_id, 'block:')
    GROUP BY agent_id, life
    QUALIFY life = max(life) OVER (PARTITION BY agent_id)
),
hidden AS (
    SELECT agent_id, life, unnest(TRY((payload->'$.turns')::BIGINT[])) AS turn
    FROM read_through WHERE type = 'turns_hidden' AND NOT erased
),
warnings AS (
    SELECT w.agent_id, w.life, max(w.seq) AS seq
    FROM read_through w ANTI JOIN hidden h ON h.agent_id = w.agent_id AND h.life = w.life AND h.turn = w.turn
    WHERE w.type = 'system_alert' AND NOT w.erased AND w.f_kind = 'memory_pressure'
    GROUP BY w.agent_id, w.life
),
open AS (SELECT agent_id, life, count(*) AS open_turns FROM turns WHERE status = 'open' GROUP BY agent_id, life),
failed AS (
    SELECT agent_id, count(*) AS failures, max(epoch_us(recorded_at)) AS failed_at FROM failures
    WHERE epoch_us(recorded_at) > {since} GROUP BY agent_id
)
SELECT s.agent_id, s.events, s.messages, s.head, s.turns, s.last_active, s.deleted, k.parent, k.parent_seq,
    coalesce(s.tokens, 0) / nullif(s."window", 0) AS used, coalesce(s.fraction, 0.75) AS fraction,
    coalesce(w.seq, 0) > coalesce(s.summary_seq, 0) AS warned,
    coalesce(o.open_turns, 0) AS open_turns, coalesce(f.failures, 0) AS failures, f.failed_at
FROM seen s
    LEFT JOIN forks k ON k.agent_id = s.agent_id AND s.life = 1
    LEFT JOIN warnings w ON w.agent_id = s.agent_id AND w.life = s.life
    LEFT JOIN open o ON o.agent_id = s.agent_id AND o.life = s.life
    LEFT JOIN failed f ON f.agent_id = s.agent_id
ORDER BY s.agent_id
