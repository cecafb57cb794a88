-- Archival memories, for a search in many agents: as records, and as they are now.
SELECT agent_id, 'stored' AS part, seq, 0::BIGINT AS number, type AS kind, epoch_us(recorded_at) AS time, '' AS name,
    coalesce(text, '') AS text, event_id AS ref, payload AS more
FROM current_records WHERE type IN ('archival_inserted', 'archival_updated', 'archival_deleted')
UNION ALL
SELECT agent_id, 'kept', seq, 0, '', epoch_us(time), '', text, memory_id,
    to_json({{'tags': tags, 'source': source}})::VARCHAR
FROM ({archival_memory})
