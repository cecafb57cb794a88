-- Every value that a memory block ever had, with what was done and which event made it happen; `ended` when it was
-- taken out of core memory.
SELECT agent_id, life, TRY(payload->>'$.label') AS label, seq, turn, coalesce(TRY(payload->>'$.operation'), 'ended') AS operation,
    coalesce(text, '') AS value, TRY((payload->>'$.limit')::BIGINT) AS "limit", event_id::VARCHAR AS event_id,
    cause::VARCHAR AS cause, recorded_at
FROM lived WHERE type IN ('memory_edited', 'block_removed') AND NOT erased
