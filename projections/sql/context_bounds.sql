-- needs: latest
-- Where the context begins, and which records are the newest of their slot.
SELECT agent_id, as_of, coalesce(max(kept_from), 0) AS kept_from, list(seq) AS slots
FROM latest GROUP BY agent_id, as_of
