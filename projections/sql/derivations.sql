-- Each derivation: how far it read, and how many memories came of it. The newest of a kind and generation is the cursor.
SELECT r.agent_id, w.as_of, r.seq, r.recorded_at, r.payload->>'derivation' AS derivation,
    coalesce((r.payload->>'generation')::BIGINT, 0) AS generation, coalesce(r.payload->>'deriver', '') AS deriver,
    (r.payload->>'from_seq')::BIGINT AS from_seq, (r.payload->>'to_seq')::BIGINT AS to_seq,
    coalesce((r.payload->>'noted')::BIGINT, 0) AS noted, coalesce((r.payload->>'refused')::BIGINT, 0) AS refused,
    coalesce((r.payload->>'importance')::BIGINT, 0) AS importance
FROM wanted w JOIN records r ON r.agent_id = w.agent_id AND r.seq <= w.as_of AND r.ended > w.as_of
WHERE r.type = 'memories_derived' AND NOT starts_with(r.payload, '{"erased":true')
