-- needs: derived_records
-- What each derived record that counts rests on: one row for each source.
SELECT agent_id, as_of, seq, type, unnest(sources) AS source FROM derived_records WHERE in_use AND NOT withdrawn
