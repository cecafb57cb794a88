-- The columns of `agent_messages` by which the limits of a message are checked, without those that take longer to find
-- out: what became of a message is told only if it was answered. A law checks that the rows are the same.
WITH mail AS (
    SELECT r.agent_id, w.as_of, r.seq, r.turn, r.type, r.recorded_at, r.payload
    FROM wanted w JOIN records r ON r.agent_id = w.agent_id AND r.seq <= w.as_of AND r.ended > w.as_of
    WHERE r.type IN ('agent_message_sent', 'agent_message_received', 'agent_reply_received')
        AND NOT starts_with(r.payload, '{"erased":true')
),
replies AS (
    SELECT agent_id, as_of, (payload->>'message')::BIGINT AS message, min_by(payload->>'outcome', seq) AS outcome,
        min(turn) AS turn
    FROM mail WHERE type = 'agent_reply_received' GROUP BY 1, 2, 3
)
SELECT m.agent_id, m.as_of, m.seq, m.payload->>'to' AS other, m.recorded_at AS time, m.turn,
    m.type = 'agent_message_sent' AS sent, coalesce(r.outcome IN ('answered', 'silent'), false) AS answered,
    m.payload->>'expires_at' IS NOT NULL AS waits, r.turn AS ended_turn, coalesce((m.payload->>'task')::BIGINT, 0) AS task,
    m.payload->>'hops' AS hops, m.payload->>'waiting' AS waiting
FROM mail m LEFT JOIN replies r
    ON r.agent_id = m.agent_id AND r.as_of = m.as_of AND r.message = m.seq AND m.type = 'agent_message_sent'
WHERE m.type <> 'agent_reply_received'
