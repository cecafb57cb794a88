-- needs: latest, context_bounds, context_window, turns, open_turns
-- What is enough of an agent's records to go on from: the context of now, every configuration, the turns that the
-- context shows a part of or that are open, with all their records, and what the timers are made of. The newest record
-- carries the counts of the memory header, so that later ones are counted from there.
WITH mine AS (
    SELECT r.*, r.ended > w.as_of AS living FROM wanted w JOIN records r ON r.agent_id = w.agent_id AND r.seq <= w.as_of
),
kept_turns AS (
    SELECT agent_id, turn FROM context_window WHERE turn > 0 UNION SELECT agent_id, turn FROM open_turns
),
timed AS (
    SELECT agent_id, max(seq) AS seq FROM mine
    WHERE living AND (type IN ('timer_set', 'timer_cancelled')
        OR (type = 'heartbeat' AND payload->>'reason' = 'timer'))
    GROUP BY agent_id, type, payload->>'timer'
),
counted AS (
    SELECT agent_id, max(seq) AS seq, arg_max(recall, seq) AS recall, arg_max(archival, seq) AS archival
    FROM mine WHERE living AND recall IS NOT NULL GROUP BY agent_id
),
newest AS (
    SELECT m.agent_id, max(m.seq) AS seq,
        coalesce(any_value(c.recall), 0)
            + count(*) FILTER (m.said AND m.seq > coalesce(c.seq, 0)) AS recall,
        coalesce(any_value(c.archival), 0)
            + coalesce(sum(m.archived) FILTER (m.seq > coalesce(c.seq, 0)), 0)::BIGINT AS archival
    FROM mine m LEFT JOIN counted c ON c.agent_id = m.agent_id
    WHERE m.living GROUP BY m.agent_id
),
kept AS (
    SELECT agent_id, seq FROM context_window
    UNION SELECT agent_id, seq FROM mine WHERE slot = 'config'
    UNION SELECT m.agent_id, m.seq FROM mine m JOIN kept_turns t ON t.agent_id = m.agent_id AND t.turn = m.turn
        WHERE m.living
    UNION SELECT agent_id, seq FROM timed
    UNION SELECT agent_id, seq FROM mine WHERE living AND type = 'agent_deleted'
    UNION SELECT agent_id, seq FROM newest
)
SELECT m.* EXCLUDE (living) REPLACE (
    CASE WHEN n.seq IS NOT NULL THEN n.recall WHEN m.slot IN ('config', 'summary') OR starts_with(m.slot, 'block:')
        THEN m.recall END AS recall,
    CASE WHEN n.seq IS NOT NULL THEN n.archival WHEN m.slot IN ('config', 'summary') OR starts_with(m.slot, 'block:')
        THEN m.archival END AS archival
)
FROM mine m JOIN kept k ON k.agent_id = m.agent_id AND k.seq = m.seq
    LEFT JOIN newest n ON n.agent_id = m.agent_id AND n.seq = m.seq
ORDER BY m.agent_id, m.seq
