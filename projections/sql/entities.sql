-- needs: mentions
-- Who and what the agent knows by name: all names of each entity, and where it is mentioned first and last.
SELECT agent_id, as_of, entity, list_sort(list(DISTINCT name)) AS names, min(seq) AS first_seq, max(seq) AS last_seq,
    count(*) AS mentions
FROM mentions GROUP BY agent_id, as_of, entity
