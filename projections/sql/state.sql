-- needs: hidden_turns?, latest, memory_pressure, context_records, turns, open_turns, timers, approvals
-- What is enough of an agent's records to go on from: the context of now, every configuration, what the timers are made
-- of, and the turns that are open or that any of these is a part of, with all their records, and which sources were attached, and which calls wait for an approval. The newest record carries
-- the counts of the memory header, so that later ones are counted from there.
WITH mine AS (
    SELECT r.*, r.ended > w.as_of AS living FROM wanted w JOIN records r ON r.agent_id = w.agent_id AND r.seq <= w.as_of
),
timed AS (
    SELECT m.agent_id, max(m.seq) AS seq FROM mine m JOIN timers t
        ON t.agent_id = m.agent_id AND t.timer = m.payload->>'timer' AND m.seq >= t.seq
    WHERE m.living AND (m.type = 'timer_set' OR (m.type = 'heartbeat' AND m.payload->>'reason' = 'timer'))
    GROUP BY m.agent_id, m.type, t.timer
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
needed AS (
    SELECT agent_id, seq FROM context_records
    UNION SELECT agent_id, seq FROM mine WHERE slot = 'config'
    UNION SELECT agent_id, seq FROM timed
    UNION SELECT agent_id, seq FROM approvals WHERE decision = 'waiting'
    UNION SELECT agent_id, seq FROM mine WHERE living AND type IN ('agent_deleted', 'source_attached', 'source_detached')
    UNION SELECT agent_id, seq FROM newest
    UNION SELECT agent_id, arg_max(seq, [turn, seq]) FROM mine WHERE living GROUP BY agent_id
),
kept_turns AS (
    SELECT m.agent_id, m.turn FROM mine m JOIN needed n ON n.agent_id = m.agent_id AND n.seq = m.seq
    WHERE m.living AND m.turn > 0
    UNION SELECT agent_id, turn FROM open_turns
),
kept AS (
    SELECT agent_id, seq FROM needed
    UNION SELECT m.agent_id, m.seq FROM mine m JOIN kept_turns t ON t.agent_id = m.agent_id AND t.turn = m.turn
        WHERE m.living
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
