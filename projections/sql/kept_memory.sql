-- needs: archival_memory
-- One memory, by its id. The parameter after the agents and as_of is the id.
SELECT memory_id, seq, epoch_us(time) AS time, text, tags, source FROM archival_memory WHERE memory_id = $3
