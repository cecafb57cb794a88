-- needs: hidden_turns
-- The records from which the rule of a group finds what was said, who was asked and what became of it, in order.
-- `hidden`: a person hid the turn.
SELECT r.agent_id, w.as_of, r.seq, r.turn, r.step, r.type, r.text, r.payload, h.turn IS NOT NULL AS hidden
FROM wanted w JOIN records r ON r.agent_id = w.agent_id AND r.seq <= w.as_of AND r.ended > w.as_of
    LEFT JOIN hidden_turns h ON h.agent_id = w.agent_id AND h.as_of = w.as_of AND h.turn = r.turn
WHERE NOT starts_with(r.payload, '{"erased":true')
    AND (r.type IN ('agent_message_sent', 'agent_message_received', 'agent_reply_received', 'agent_forked',
            'message_sent')
        OR (r.type = 'function_result' AND r.payload->>'name' = 'ask_agent' AND contains(r.payload, '"ok":false'))
        OR (r.step = 0 AND r.turn > 0 AND r.type IN ({inputs})))
ORDER BY r.seq
