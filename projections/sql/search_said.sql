-- Seqs of what had been said up to a seq, in the incarnation of that seq. Parameters after the agents and as_of: both
-- again as plain values, by which DuckDB reads the table faster than by a list or a join. Texts are not read here: from
-- a compressed column, one text costs as much as the 2,000 around it.
SELECT r.seq FROM records r WHERE r.agent_id = $3 AND r.said AND r.seq <= $4 AND r.ended > $4 ORDER BY r.seq
