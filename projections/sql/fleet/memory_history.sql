-- Every value that a memory block ever had, with what was done and which event made it happen.
SELECT agent_id, life, TRY(payload->>'$.label') AS label, seq, turn, TRY(payload->>'$.operation') AS operation,
    coalesce(text, '') AS value, TRY((payload->>'$.limit')::BIGINT) AS "limit", event_id::VARCHAR AS event_id,
    cause::VARCHAR AS cause, recorded_at
FROM lived WHERE type = 'memory_edited' AND NOT erased
