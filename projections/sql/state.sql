-- needs: hidden_turns?, latest, memory_pressure, context_records, turns, open_turns, timers, approvals, agent_messages
-- What is enough of an agent's records to go on from: the context of now, every configuration, what the timers are made
-- of, which sources were attached, which calls wait for an approval, which messages of agents are not over, and the turns that are open or that any of these is
-- a part of, with all their records. Only the begin of a timer or of an approval that is over is left out there: its end
-- may be in another turn, and without it the timer would come back. The newest record carries the counts of the memory
-- header, so that later ones are counted from there.
WITH mine AS (
    SELECT r.*, r.ended > w.as_of AS living FROM wanted w JOIN records r ON r.agent_id = w.agent_id AND r.seq <= w.as_of
),
keyed AS (
    SELECT agent_id, seq, turn, type, CASE type WHEN 'approval_requested' THEN 'approval ' || seq
        WHEN 'approval_decided' THEN 'approval ' || (payload->>'request') ELSE payload->>'timer' END AS timer
    FROM mine
    WHERE living AND (type IN ('timer_set', 'timer_cancelled', 'approval_requested', 'approval_decided')
            OR (type = 'heartbeat' AND payload->>'reason' = 'timer'))
        AND NOT starts_with(payload, '{"erased":true')
),
-- Timers that are not over, and those that an open turn began, all of whose records a state has: how these ended, too.
begun AS (
    SELECT agent_id, timer, seq FROM timers
    UNION ALL SELECT k.agent_id, k.timer, k.seq FROM keyed k
        JOIN open_turns o ON o.agent_id = k.agent_id AND o.turn = k.turn
    WHERE k.type IN ('timer_set', 'approval_requested')
),
timed AS (
    SELECT k.agent_id, max(k.seq) AS seq FROM keyed k
        JOIN begun b ON b.agent_id = k.agent_id AND b.timer = k.timer AND k.seq >= b.seq
    GROUP BY k.agent_id, k.type, k.timer
),
-- Messages between agents that are not over, and those of open turns, all of whose records a state has, with their ends.
mail AS (
    SELECT a.agent_id, a.seq FROM agent_messages a
        LEFT JOIN open_turns o ON o.agent_id = a.agent_id AND o.turn = a.turn
    WHERE a.state IN ('pending', 'waiting', 'working', 'ready') OR o.turn IS NOT NULL
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
    UNION SELECT agent_id, seq FROM mail
    UNION SELECT m.agent_id, m.seq FROM mine m
        JOIN mail a ON a.agent_id = m.agent_id AND a.seq = (m.payload->>'message')::BIGINT
    WHERE m.living AND m.type IN ('agent_message_settled', 'agent_reply_received')
    -- The answers on which an answer rests that is still to be given, and the fork, before which nothing is to be done.
    UNION SELECT m.agent_id, m.seq FROM mine m
        JOIN mail a ON a.agent_id = m.agent_id AND a.seq = (m.payload->>'task')::BIGINT
    WHERE m.living AND m.type = 'agent_reply_received'
    UNION SELECT agent_id, seq FROM mine WHERE living AND type = 'agent_forked'
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
        LEFT JOIN open_turns o ON o.agent_id = m.agent_id AND o.turn = m.turn
        WHERE m.living AND (o.turn IS NOT NULL OR m.type NOT IN ('timer_set', 'approval_requested', 'agent_message_sent',
            'agent_message_received'))
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
