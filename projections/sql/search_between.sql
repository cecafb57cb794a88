-- needs: said, recall_memory
-- What was said in a span of time, in order. Parameters after the agents and as_of: from (inclusive) and to (exclusive),
-- microseconds UTC, and the first row and number of rows of the page.
SELECT seq, epoch_us(time) AS time, role, name, text, ref, 0.0 AS score, count(*) OVER () AS total
FROM recall_memory WHERE epoch_us(time) >= $3 AND epoch_us(time) < $4
ORDER BY time, seq LIMIT $6 OFFSET $5
