-- needs: hidden_turns?, latest, memory_pressure
-- What the context shows otherwise than it was recorded: how many characters of a record or block, and a thought in
-- other words. `target` is the record's seq or the block's slot. The newest change of each counts.
SELECT p.agent_id, p.as_of, p.during,
    coalesce(nullif(r.payload->>'target_seq', '0'), 'block:' || (r.payload->>'label')) AS target,
    arg_max((r.payload->>'shown_chars')::BIGINT, r.seq) AS shown_chars,
    arg_max(CASE r.type WHEN 'reply_rethought' THEN r.text END, r.seq) AS text
FROM memory_pressure p JOIN records r ON r.agent_id = p.agent_id AND r.seq <= p.as_of AND r.ended > p.as_of
WHERE r.seq >= p.kept_from AND r.type IN ('context_trimmed', 'reply_rethought')
    AND NOT starts_with(r.payload, '{"erased":true')
GROUP BY ALL
