-- needs: open_turns
-- Messages between this agent and others, and what became of them. A sent one is pending, delivered, waiting (for an
-- answer), answered, silent, expired or undeliverable. A received one is received (no answer is wanted), working (its
-- turns are not over), ready (its answer is to be delivered) or answered. What a fork took over from its parent, and what
-- a rerun did, is copied: nothing of it leaves the log. `task`: the received message that it was sent for.
WITH mine AS (
    SELECT r.agent_id, w.as_of, r.seq, r.turn, r.step, r.type, r.event_id, r.cause, r.recorded_at, r.text, r.payload
    FROM wanted w JOIN records r ON r.agent_id = w.agent_id AND r.seq <= w.as_of AND r.ended > w.as_of
    WHERE (r.type IN ('agent_message_sent', 'agent_message_received', 'agent_reply_received', 'agent_message_settled',
                'agent_forked', 'message_sent')
            OR (r.step = 0 AND r.turn > 0 AND r.type IN ({inputs})))
        AND NOT starts_with(r.payload, '{"erased":true')
),
forks AS (SELECT agent_id, as_of, max(seq) AS seq FROM mine WHERE type = 'agent_forked' GROUP BY 1, 2),
inputs AS (
    SELECT agent_id, as_of, turn, min_by(text, seq) AS text, count(cause) > 0 AS repeated
    FROM mine WHERE step = 0 AND turn > 0 AND type IN ({inputs}) GROUP BY 1, 2, 3
),
ends AS (
    SELECT agent_id, as_of, (payload->>'message')::BIGINT AS message,
        min_by(payload->>'outcome', seq) AS outcome, min(seq) AS seq
    FROM mine WHERE type = 'agent_message_settled' GROUP BY 1, 2, 3
),
replies AS (
    SELECT agent_id, as_of, (payload->>'message')::BIGINT AS message,
        min_by(payload->>'outcome', seq) AS outcome, min(seq) AS seq, min(turn) AS turn
    FROM mine WHERE type = 'agent_reply_received' GROUP BY 1, 2, 3
),
sent AS (
    SELECT m.*, coalesce((m.payload->>'expires_at')::BIGINT, 0) AS expires_us,
        coalesce((m.payload->>'task')::BIGINT, 0) AS task,
        CASE WHEN m.seq <= coalesce(f.seq, 0) OR coalesce(i.repeated, false) THEN 'copied'
            WHEN r.outcome IS NOT NULL THEN r.outcome
            WHEN e.outcome IS NULL THEN 'pending'
            WHEN m.payload->>'expires_at' IS NOT NULL THEN 'waiting'
            ELSE e.outcome END AS state,
        coalesce(r.seq, e.seq) AS ended_seq, r.turn AS ended_turn
    FROM mine m LEFT JOIN forks f ON f.agent_id = m.agent_id AND f.as_of = m.as_of
        LEFT JOIN inputs i ON i.agent_id = m.agent_id AND i.as_of = m.as_of AND i.turn = m.turn
        LEFT JOIN ends e ON e.agent_id = m.agent_id AND e.as_of = m.as_of AND e.message = m.seq
        LEFT JOIN replies r ON r.agent_id = m.agent_id AND r.as_of = m.as_of AND r.message = m.seq
    WHERE m.type = 'agent_message_sent'
),
task_turns AS (
    SELECT agent_id, as_of, seq AS task, turn FROM mine WHERE type = 'agent_message_received'
    UNION SELECT agent_id, as_of, (payload->>'task')::BIGINT, turn FROM mine
    WHERE type = 'agent_reply_received' AND payload->>'task' IS NOT NULL
),
tasks AS (
    SELECT t.agent_id, t.as_of, t.task, bool_or(o.turn IS NOT NULL) AS working,
        string_agg(s.text, chr(10) ORDER BY s.seq) AS answer
    FROM task_turns t
        LEFT JOIN open_turns o ON o.agent_id = t.agent_id AND o.as_of = t.as_of AND o.turn = t.turn
        LEFT JOIN mine s ON s.agent_id = t.agent_id AND s.as_of = t.as_of AND s.turn = t.turn AND s.type = 'message_sent'
    GROUP BY 1, 2, 3
),
asks AS (SELECT DISTINCT agent_id, as_of, task FROM sent WHERE state IN ('pending', 'waiting') AND expires_us > 0),
received AS (
    SELECT m.*, CASE WHEN m.seq <= coalesce(f.seq, 0) OR coalesce(i.repeated, false) THEN 'copied'
            WHEN NOT contains(m.payload, '"waits":true') THEN 'received'
            WHEN e.outcome IS NOT NULL THEN 'answered'
            WHEN t.working OR a.task IS NOT NULL THEN 'working'
            ELSE 'ready' END AS state,
        e.seq AS ended_seq, i.text AS said, t.answer
    FROM mine m JOIN tasks t ON t.agent_id = m.agent_id AND t.as_of = m.as_of AND t.task = m.seq
        LEFT JOIN forks f ON f.agent_id = m.agent_id AND f.as_of = m.as_of
        LEFT JOIN inputs i ON i.agent_id = m.agent_id AND i.as_of = m.as_of AND i.turn = m.turn
        LEFT JOIN ends e ON e.agent_id = m.agent_id AND e.as_of = m.as_of AND e.message = m.seq
        LEFT JOIN asks a ON a.agent_id = m.agent_id AND a.as_of = m.as_of AND a.task = m.seq
    WHERE m.type = 'agent_message_received'
)
SELECT agent_id, as_of, seq, 'sent' AS direction, payload->>'to' AS other, text, recorded_at AS time, turn, task,
    nullif(expires_us, 0) AS expires_us, state, ended_seq, event_id::VARCHAR AS sent_id, NULL::BIGINT AS message,
    payload->>'hops' AS hops, payload->>'waiting' AS waiting, ended_turn, NULL AS answer,
    (payload->>'from_seq')::BIGINT AS from_seq, (payload->>'to_seq')::BIGINT AS to_seq, payload->>'budgets' AS budgets
FROM sent
UNION ALL
SELECT agent_id, as_of, seq, 'received', payload->>'sender', said, recorded_at, turn, seq, NULL, state, ended_seq,
    payload->>'sent', (payload->>'message')::BIGINT, payload->>'hops',
    payload->>'waiting', NULL, answer, (payload->>'from_seq')::BIGINT, (payload->>'to_seq')::BIGINT,
    payload->>'budgets'
FROM received
