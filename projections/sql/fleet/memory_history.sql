-- Every value that a memory block ever had, with the operation and the event that caused it; `ended`: when the block
-- was removed from core memory.
SELECT agent_id, life, TRY(payload->>'$.label') AS label, seq, turn, coalesce(TRY(payload->>'$.operation'), 'ended') AS operation,
    coalesce(text, '') AS value, TRY((payload->>'$.limit')::BIGINT) AS "limit", event_id::VARCHAR AS event_id,
    cause::VARCHAR AS cause, recorded_at
FROM lived WHERE type IN ('memory_edited', 'block_removed') AND NOT erased
