-- The rows of `agent_messages` that are pending, waiting, working or ready: what the agent's host reads after an
-- activation, and keeps from record to record then. Only the records of these messages are read out of their JSON, and a
-- state has all of them, so the cost does not grow with what is over. A law checks that the rows are the same. `turns`:
-- those of a received message.
WITH mail AS MATERIALIZED (
    SELECT r.agent_id, w.as_of, r.seq, r.turn, r.type, r.event_id, r.recorded_at, r.text, r.payload
    FROM wanted w JOIN records r ON r.agent_id = w.agent_id AND r.seq <= w.as_of AND r.ended > w.as_of
    WHERE r.type IN ('agent_message_sent', 'agent_message_received', 'agent_reply_received', 'agent_message_settled',
            'agent_forked')
        AND NOT starts_with(r.payload, '{"erased":true')
),
forks AS (SELECT agent_id, as_of, max(seq) AS seq FROM mail WHERE type = 'agent_forked' GROUP BY 1, 2),
-- What became of a message, by its seq: it was settled, or its answer or the end of its wait came.
ends AS (
    SELECT agent_id, as_of, (payload->>'message')::BIGINT AS message,
        min(seq) FILTER (type = 'agent_message_settled') AS settled_seq,
        bool_or(type = 'agent_reply_received') AS replied
    FROM mail WHERE type IN ('agent_message_settled', 'agent_reply_received') GROUP BY 1, 2, 3
),
unfinished AS (
    SELECT m.*, e.settled_seq, m.type = 'agent_message_sent' AS sent
    FROM mail m LEFT JOIN forks f ON f.agent_id = m.agent_id AND f.as_of = m.as_of
        LEFT JOIN ends e ON e.agent_id = m.agent_id AND e.as_of = m.as_of AND e.message = m.seq
    WHERE m.seq > coalesce(f.seq, 0) AND (
        (m.type = 'agent_message_sent' AND NOT coalesce(e.replied, false)
            AND (e.settled_seq IS NULL OR contains(m.payload, '"expires_at":')))
        OR (m.type = 'agent_message_received' AND e.settled_seq IS NULL AND contains(m.payload, '"waits":true')))
),
-- Turns that work on a question of another agent: that of the question, and those of answers that it rests on.
tasks AS (
    SELECT agent_id, as_of, seq AS task, turn FROM unfinished WHERE NOT sent
    UNION SELECT u.agent_id, u.as_of, u.seq, m.turn FROM unfinished u
        JOIN mail m ON m.agent_id = u.agent_id AND m.as_of = u.as_of AND m.type = 'agent_reply_received'
            AND (m.payload->>'task')::BIGINT = u.seq
    WHERE NOT u.sent
),
their_turns AS (SELECT DISTINCT agent_id, as_of, turn FROM tasks UNION SELECT agent_id, as_of, turn FROM unfinished),
theirs AS MATERIALIZED (
    SELECT r.agent_id, t.as_of, r.seq, r.turn, r.step, r.type, r.cause, r.recorded_at, r.text, r.payload
    FROM their_turns t JOIN records r ON r.agent_id = t.agent_id AND r.turn = t.turn AND r.seq <= t.as_of
        AND r.ended > t.as_of
    WHERE r.turn > 0 AND r.type IN ({inputs}, {stops}, 'model_reply', 'function_result', 'message_sent')
),
mine AS (
    SELECT agent_id, as_of, seq, turn, step, type, recorded_at,
        type IN ({inputs}) AND NOT coalesce((payload->>'imported')::BOOLEAN, false)
            AND NOT starts_with(payload, '{"erased":true') AS input,
        CASE WHEN type = 'model_reply' THEN coalesce(json_array_length(payload, '$.calls'), 0) ELSE 0 END AS calls,
        contains(payload, '"approval":') AS approved, 0 AS tokens
    FROM theirs WHERE type <> 'message_sent'
),
{turns by as_of},
inputs AS (
    SELECT agent_id, as_of, turn, min_by(text, seq) AS text, count(cause) > 0 AS repeated
    FROM theirs
    WHERE step = 0 AND type IN ({inputs}) AND NOT starts_with(payload, '{"erased":true') GROUP BY 1, 2, 3
),
answers AS (
    SELECT t.agent_id, t.as_of, t.task, bool_or(d.status IS NOT DISTINCT FROM 'open') AS working,
        string_agg(s.text, chr(10) ORDER BY s.seq) AS answer, list(DISTINCT t.turn) AS turns
    FROM tasks t LEFT JOIN turned d ON d.agent_id = t.agent_id AND d.as_of = t.as_of AND d.turn = t.turn
        LEFT JOIN theirs s ON s.agent_id = t.agent_id AND s.as_of = t.as_of AND s.turn = t.turn
            AND s.type = 'message_sent' AND NOT starts_with(s.payload, '{"erased":true')
    GROUP BY 1, 2, 3
),
own AS (
    SELECT u.*, i.text AS said, coalesce((u.payload->>'expires_at')::BIGINT, 0) AS expires_us,
        coalesce((u.payload->>'task')::BIGINT, 0) AS task
    FROM unfinished u LEFT JOIN inputs i ON i.agent_id = u.agent_id AND i.as_of = u.as_of AND i.turn = u.turn
    WHERE NOT coalesce(i.repeated, false)
),
asked AS (SELECT DISTINCT agent_id, as_of, task FROM own WHERE sent AND expires_us > 0)
SELECT o.agent_id, o.as_of, o.seq, 'sent' AS direction, o.payload->>'to' AS other, o.text, o.recorded_at AS time, o.turn,
    o.task, nullif(o.expires_us, 0) AS expires_us, CASE WHEN o.settled_seq IS NULL THEN 'pending' ELSE 'waiting' END AS state,
    o.settled_seq AS ended_seq, o.event_id::VARCHAR AS sent_id, NULL::BIGINT AS message, o.payload->>'hops' AS hops,
    o.payload->>'waiting' AS waiting, NULL::BIGINT AS ended_turn, NULL AS answer,
    (o.payload->>'from_seq')::BIGINT AS from_seq, (o.payload->>'to_seq')::BIGINT AS to_seq,
    o.payload->>'budgets' AS budgets, []::BIGINT[] AS turns
FROM own o WHERE o.sent
UNION ALL
SELECT o.agent_id, o.as_of, o.seq, 'received', o.payload->>'sender', o.said, o.recorded_at, o.turn, o.seq, NULL,
    CASE WHEN t.working OR a.task IS NOT NULL THEN 'working' ELSE 'ready' END, NULL, o.payload->>'sent',
    (o.payload->>'message')::BIGINT, o.payload->>'hops', o.payload->>'waiting', NULL, t.answer,
    (o.payload->>'from_seq')::BIGINT, (o.payload->>'to_seq')::BIGINT, o.payload->>'budgets',
    t.turns
FROM own o JOIN answers t ON t.agent_id = o.agent_id AND t.as_of = o.as_of AND t.task = o.seq
    LEFT JOIN asked a ON a.agent_id = o.agent_id AND a.as_of = o.as_of AND a.task = o.seq
WHERE NOT o.sent
