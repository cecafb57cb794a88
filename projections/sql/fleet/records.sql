-- Every record of every agent and source, as it was stored.
SELECT agent_id, life, seq, "commit", event_id::VARCHAR AS event_id, recorded_at, said_at, type, turn, step,
    cause::VARCHAR AS cause, version, text, payload, erased
FROM lived
