-- The agents among $1 whose newest summary shows records that are in the cold table: a summary was taken back.
SELECT DISTINCT c.agent_id FROM cold c JOIN (
    SELECT agent_id, arg_max(kept_from, seq) AS kept_from FROM records
    WHERE slot = 'summary' AND ended > 9223372036854775806 AND list_contains($1::VARCHAR[], agent_id)
    GROUP BY agent_id
) s ON s.agent_id = c.agent_id AND c.shown AND c.seq >= s.kept_from AND c.ended > 9223372036854775806
