-- One row for each agent in its current incarnation, for the console: the columns of `listing`, how full its context
-- window is, its turns that are not ended, and its failures after a time. `listing` is the query of that name, and
-- `since` a time in microseconds.
WITH listed AS ({listing}),
open AS (SELECT agent_id, life, count(*) AS open_turns FROM turns WHERE status = 'open' GROUP BY agent_id, life),
failed AS (
    SELECT agent_id, count(*) AS failures, max(epoch_us(recorded_at)) AS failed_at FROM failures
    WHERE epoch_us(recorded_at) > {since} GROUP BY agent_id
)
SELECT l.agent_id, l.events, l.messages, l.head, l.turns, l.last_active, l.deleted, l.parent, l.parent_seq,
    p.used, coalesce(p.fraction, 0.75) AS fraction, coalesce(p.warned, false) AS warned,
    coalesce(o.open_turns, 0) AS open_turns, coalesce(f.failures, 0) AS failures, f.failed_at
FROM listed l
    LEFT JOIN pressure p ON p.agent_id = l.agent_id
    LEFT JOIN open o ON o.agent_id = l.agent_id AND o.life = p.life
    LEFT JOIN failed f ON f.agent_id = l.agent_id
ORDER BY l.agent_id
