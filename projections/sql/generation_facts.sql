-- needs: generations, derived_records, said
-- The facts that each generation believes and believed: each with the time in which it holds. A fact without an end in
-- its own record ends by the first `fact_ended` that counts. `valid_from` null: unknown, so it holds from the beginning
-- of time; `valid_to` is exclusive. A fact that ended at an unknown time holds at no time that is asked for. `said_at` is
-- when the newest message that it rests on was said.
WITH counted AS (
    SELECT d.*, g.generation AS view, g.in_use AS view_in_use
    FROM generations g JOIN derived_records d ON d.agent_id = g.agent_id AND d.as_of = g.as_of
        AND d.generation IN (0, g.generation) AND NOT d.withdrawn
    WHERE d.type IN ('fact_noted', 'fact_ended')
),
ends AS (
    SELECT agent_id, as_of, view, (payload->>'fact')::BIGINT AS fact, min(seq) AS ended_seq, arg_min(text, seq) AS reason,
        arg_min(coalesce((payload->>'successor')::BIGINT, 0), seq) AS successor,
        -- A null is the smallest value's own: packed in a list, so that it is not passed over.
        arg_min([(payload->>'valid_to')::BIGINT], seq)[1] AS valid_to,
        arg_min(coalesce(payload->>'to_precision', 'unknown'), seq) AS to_precision
    FROM counted WHERE type = 'fact_ended' GROUP BY 1, 2, 3, 4
),
cited AS (SELECT agent_id, as_of, view, seq, unnest(sources) AS source FROM counted WHERE type = 'fact_noted'),
told AS (
    SELECT c.agent_id, c.as_of, c.view, c.seq, max(s.time) AS said_at
    FROM cited c JOIN said s ON s.agent_id = c.agent_id AND s.as_of = c.as_of AND s.seq = c.source AND s.ended > s.as_of
    GROUP BY 1, 2, 3, 4
)
SELECT f.agent_id, f.as_of, f.view, f.view_in_use AS in_use, f.seq, f.recorded_at AS noted_at,
    coalesce(s.said_at, f.recorded_at) AS said_at, f.payload->>'subject' AS subject,
    f.payload->>'predicate' AS predicate, f.payload->>'object' AS object, f.text AS sentence,
    coalesce((f.payload->>'single')::BOOLEAN, false) AS single,
    make_timestamptz((f.payload->>'valid_from')::BIGINT) AS valid_from,
    coalesce(f.payload->>'from_precision', 'unknown') AS from_precision,
    make_timestamptz(coalesce(e.valid_to, (f.payload->>'valid_to')::BIGINT)) AS valid_to,
    CASE WHEN e.valid_to IS NOT NULL THEN e.to_precision
        ELSE coalesce(f.payload->>'to_precision', 'unknown') END AS to_precision,
    coalesce(e.ended_seq, 0) AS ended_seq, coalesce(e.successor, 0) AS successor, coalesce(e.reason, '') AS reason,
    e.ended_seq IS NULL AS believed, f.sources, f.deriver, f.generation
FROM counted f LEFT JOIN ends e ON e.agent_id = f.agent_id AND e.as_of = f.as_of AND e.view = f.view
        AND e.fact = f.seq
    LEFT JOIN told s ON s.agent_id = f.agent_id AND s.as_of = f.as_of AND s.seq = f.seq AND s.view = f.view
WHERE f.type = 'fact_noted'
