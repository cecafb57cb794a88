-- Timers that will still send a heartbeat, and when: the due time, or the first one after the last heartbeat it sent,
-- and not before a pause has ended. A call that waits for an approval is a timer, too: when it is due, it is refused.
WITH named AS (
    SELECT r.agent_id, w.as_of, CASE r.type WHEN 'approval_requested' THEN 'timer_set'
            WHEN 'approval_decided' THEN 'timer_cancelled' ELSE r.type END AS type,
        r.seq, epoch_us(r.recorded_at) AS at_us,
        CASE r.type WHEN 'approval_requested' THEN 'the call of ' || (r.payload->>'name') || ' counts as refused'
            ELSE r.text END AS text,
        coalesce(r.payload->>'due_at', r.payload->>'expires_at')::BIGINT AS due_us,
        coalesce((r.payload->>'every_s')::BIGINT, 0) * 1000000 AS every_us,
        CASE r.type WHEN 'approval_requested' THEN 'approval ' || r.seq
            WHEN 'approval_decided' THEN 'approval ' || (r.payload->>'request') ELSE r.payload->>'timer' END AS timer
    FROM wanted w JOIN records r ON r.agent_id = w.agent_id AND r.seq <= w.as_of AND r.ended > w.as_of
    WHERE (r.type IN ('timer_set', 'timer_cancelled', 'approval_decided')
            OR (r.type = 'approval_requested' AND contains(r.payload, '"expires_at":'))
            OR (r.type = 'heartbeat' AND r.payload->>'reason' = 'timer'))
        AND NOT starts_with(r.payload, '{"erased":true')
),
pauses AS (
    SELECT r.agent_id, w.as_of, arg_max((r.payload->>'until')::BIGINT, r.seq) AS until_us
    FROM wanted w JOIN records r ON r.agent_id = w.agent_id AND r.seq <= w.as_of AND r.ended > w.as_of
    WHERE r.slot = 'pause' GROUP BY 1, 2
),
newest AS (
    SELECT agent_id, as_of, timer, max(seq) FILTER (type = 'timer_set') AS set_seq,
        coalesce(max(seq) FILTER (type = 'timer_cancelled'), 0) AS cancelled_seq
    FROM named GROUP BY 1, 2, 3
),
live AS (
    SELECT n.agent_id, n.as_of, n.timer, s.seq, coalesce(s.text, '') AS text, s.due_us,
        s.every_us,
        (SELECT max(h.at_us) FROM named h WHERE h.agent_id = n.agent_id AND h.as_of = n.as_of AND h.timer = n.timer
            AND h.type = 'heartbeat' AND h.seq > n.set_seq) AS fired_us
    FROM newest n JOIN named s ON s.agent_id = n.agent_id AND s.as_of = n.as_of AND s.seq = n.set_seq
    WHERE n.set_seq > n.cancelled_seq
)
SELECT l.agent_id, l.as_of, l.timer, l.seq, l.text, l.every_us // 1000000 AS every_s,
    greatest(CASE WHEN l.fired_us IS NULL OR l.fired_us < l.due_us THEN l.due_us
        ELSE l.due_us + l.every_us * ((l.fired_us - l.due_us) // l.every_us + 1) END,
        coalesce(p.until_us, 0)) AS due_us
FROM live l LEFT JOIN pauses p ON p.agent_id = l.agent_id AND p.as_of = l.as_of
WHERE l.fired_us IS NULL OR l.every_us > 0
