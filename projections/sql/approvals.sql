-- needs: hidden_turns?
-- Calls that wait or waited for a person's approval, or for the answer to a question, and what was decided: waiting,
-- approved, refused, expired, or withdrawn, because the turn of the call was taken back.
WITH mine AS (
    SELECT r.agent_id, w.as_of, r.seq, r.turn, r.step, r.event_id, r.type, r.recorded_at, r.text, r.payload
    FROM wanted w JOIN records r ON r.agent_id = w.agent_id AND r.seq <= w.as_of AND r.ended > w.as_of
    WHERE r.type IN ('approval_requested', 'approval_decided') AND NOT starts_with(r.payload, '{"erased":true')
),
decided AS (
    SELECT *, (payload->>'request')::BIGINT AS request FROM mine WHERE type = 'approval_decided'
    QUALIFY row_number() OVER (PARTITION BY agent_id, as_of, request ORDER BY seq) = 1
)
SELECT a.agent_id, a.as_of, a.seq, a.turn, a.step, a.event_id::VARCHAR AS event_id, a.recorded_at AS asked_at,
    a.payload->>'call_id' AS call_id, a.payload->>'name' AS name, a.payload->>'arguments' AS arguments,
    (a.payload->>'expires_at')::BIGINT AS expires_us, a.payload->'question'->>'text' AS question,
    coalesce(d.payload->>'decision',
        CASE WHEN h.turn IS NOT NULL THEN 'withdrawn' END, -- if changed
        'waiting') AS decision,
    d.seq AS decided_seq, d.event_id::VARCHAR AS decided_id, d.recorded_at AS decided_at, d.text AS reason,
    CASE WHEN contains(d.payload, '"edited":true') THEN d.payload->>'arguments' END AS edited,
    d.payload->>'by' AS decided_by
FROM mine a LEFT JOIN decided d ON d.agent_id = a.agent_id AND d.as_of = a.as_of AND d.request = a.seq
    LEFT JOIN hidden_turns h ON h.agent_id = a.agent_id AND h.as_of = a.as_of AND h.turn = a.turn -- if changed
WHERE a.type = 'approval_requested'
