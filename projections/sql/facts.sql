-- needs: derived_records
-- What the agent believes and believed: each fact with the time in which it holds. A fact without an end in its own
-- record ends by the first `fact_ended` that counts. `valid_from` null: unknown, so it holds from the beginning of time;
-- `valid_to` is exclusive. A fact that ended at an unknown time holds at no time that is asked for. What was believed
-- at a moment of the agent's life is another `as_of`.
WITH counted AS (SELECT * FROM derived_records WHERE in_use AND NOT withdrawn),
ends AS (
    SELECT agent_id, as_of, (payload->>'fact')::BIGINT AS fact, min(seq) AS ended_seq, arg_min(text, seq) AS reason,
        arg_min(coalesce((payload->>'successor')::BIGINT, 0), seq) AS successor,
        -- A null is the smallest value's own: packed in a list, so that it is not passed over.
        arg_min([(payload->>'valid_to')::BIGINT], seq)[1] AS valid_to,
        arg_min(coalesce(payload->>'to_precision', 'unknown'), seq) AS to_precision
    FROM counted WHERE type = 'fact_ended' GROUP BY 1, 2, 3
)
SELECT f.agent_id, f.as_of, f.seq, f.recorded_at AS noted_at, f.payload->>'subject' AS subject,
    f.payload->>'predicate' AS predicate, f.payload->>'object' AS object, f.text AS sentence,
    coalesce((f.payload->>'single')::BOOLEAN, false) AS single,
    make_timestamptz((f.payload->>'valid_from')::BIGINT) AS valid_from,
    coalesce(f.payload->>'from_precision', 'unknown') AS from_precision,
    make_timestamptz(coalesce(e.valid_to, (f.payload->>'valid_to')::BIGINT)) AS valid_to,
    CASE WHEN e.valid_to IS NOT NULL THEN e.to_precision
        ELSE coalesce(f.payload->>'to_precision', 'unknown') END AS to_precision,
    coalesce(e.ended_seq, 0) AS ended_seq, coalesce(e.successor, 0) AS successor, coalesce(e.reason, '') AS reason,
    e.ended_seq IS NULL AS believed, f.sources, f.deriver, f.generation
FROM counted f LEFT JOIN ends e ON e.agent_id = f.agent_id AND e.as_of = f.as_of AND e.fact = f.seq
WHERE f.type = 'fact_noted'
