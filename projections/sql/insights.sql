-- needs: outdated, derived_records
-- What the agent concluded. `outdated`: it rests on a fact that has ended.
SELECT d.agent_id, d.as_of, d.seq, d.recorded_at AS noted_at, d.text, coalesce(d.payload->>'question', '') AS question,
    coalesce(d.payload->>'insight', 'reflection') AS kind, coalesce((d.payload->>'depth')::BIGINT, 1) AS depth,
    coalesce((d.payload->>'importance')::BIGINT, 5) AS importance, d.sources, d.deriver, d.generation,
    EXISTS (FROM outdated o WHERE o.agent_id = d.agent_id AND o.as_of = d.as_of AND o.seq = d.seq) AS outdated
FROM derived_records d WHERE d.type = 'insight_noted' AND d.in_use AND NOT d.withdrawn
