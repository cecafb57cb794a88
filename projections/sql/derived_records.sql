-- Every record that was derived in this incarnation, of all generations, with its sources. `withdrawn` and `in_use` say
-- if it counts: the newest `memories_withdrawn` that names it decides, and the generation that was chosen last (1 before
-- any choice). Records of generation 0 are in use in every generation. A record is withdrawn, too, if one of its sources
-- was erased, or rests on one that was.
WITH RECURSIVE mine AS (
    SELECT r.agent_id, w.as_of, r.seq, r.type, r.event_id, r.cause, r.recorded_at, r.turn, r.text, r.payload
    FROM wanted w JOIN records r ON r.agent_id = w.agent_id AND r.seq <= w.as_of AND r.ended > w.as_of
    WHERE r.type IN ({derived}, 'memories_withdrawn', 'generation_chosen') AND NOT starts_with(r.payload, '{"erased":true')
),
marks AS (
    SELECT agent_id, as_of, unnest((payload->'seqs')::BIGINT[]) AS target, seq,
        coalesce((payload->>'withdrawn')::BOOLEAN, true) AS withdrawn
    FROM mine WHERE type = 'memories_withdrawn'
),
marked AS (
    SELECT agent_id, as_of, target, arg_max(withdrawn, seq) AS withdrawn FROM marks GROUP BY agent_id, as_of, target
),
chosen AS (
    SELECT agent_id, as_of, arg_max((payload->>'generation')::BIGINT, seq) AS generation
    FROM mine WHERE type = 'generation_chosen' GROUP BY agent_id, as_of
),
erased AS (
    SELECT r.agent_id, w.as_of, r.seq
    FROM wanted w JOIN records r ON r.agent_id = w.agent_id AND r.seq <= w.as_of AND r.ended > w.as_of
    WHERE starts_with(r.payload, '{"erased":true')
),
links AS (
    SELECT agent_id, as_of, seq, unnest((payload->'sources')::BIGINT[]) AS source FROM mine WHERE type IN ({derived})
),
lost AS (
    SELECT agent_id, as_of, seq FROM erased
    UNION
    SELECT l.agent_id, l.as_of, l.seq FROM lost o
        JOIN links l ON l.agent_id = o.agent_id AND l.as_of = o.as_of AND l.source = o.seq
)
SELECT m.agent_id, m.as_of, m.seq, m.type, m.event_id, m.cause, m.recorded_at, m.turn, coalesce(m.text, '') AS text,
    m.payload, coalesce((m.payload->'sources')::BIGINT[], []) AS sources, coalesce(m.payload->>'deriver', '') AS deriver,
    coalesce((m.payload->>'generation')::BIGINT, 0) AS generation,
    coalesce(k.withdrawn, false) OR o.seq IS NOT NULL AS withdrawn,
    coalesce((m.payload->>'generation')::BIGINT, 0) IN (0, coalesce(c.generation, 1)) AS in_use
FROM mine m LEFT JOIN marked k ON k.agent_id = m.agent_id AND k.as_of = m.as_of AND k.target = m.seq
    LEFT JOIN lost o ON o.agent_id = m.agent_id AND o.as_of = m.as_of AND o.seq = m.seq
    LEFT JOIN chosen c ON c.agent_id = m.agent_id AND c.as_of = m.as_of
WHERE m.type IN ({derived})
