-- needs: derived_records, facts
-- Derived records that rest on a fact that has ended, directly or through others: `because` is that fact, `steps` the
-- length of the shortest way to it. Sources are earlier records, so every way ends.
WITH RECURSIVE links AS (
    SELECT agent_id, as_of, seq, unnest(sources) AS source FROM derived_records
    WHERE in_use AND NOT withdrawn AND type IN ('insight_noted', 'fact_noted', 'plan_made')
),
resting AS (
    SELECT l.agent_id, l.as_of, l.seq, l.source AS because, 1 AS steps
    FROM links l JOIN facts f ON f.agent_id = l.agent_id AND f.as_of = l.as_of AND f.seq = l.source AND NOT f.believed
    UNION
    SELECT l.agent_id, l.as_of, l.seq, r.because, r.steps + 1
    FROM resting r JOIN links l ON l.agent_id = r.agent_id AND l.as_of = r.as_of AND l.source = r.seq
)
SELECT agent_id, as_of, seq, because, min(steps) AS steps FROM resting GROUP BY ALL
