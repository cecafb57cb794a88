-- needs: derived_records, said, entity_names
-- Each mention of an entity: as the subject or object of a fact, as who spoke, or by name in a message. A name of a
-- message is a run of capitalized words that is the name of an entity or another name of one.
WITH facts_named AS (
    SELECT agent_id, as_of, seq, 'subject' AS role, payload->>'subject' AS name FROM derived_records
    WHERE type = 'fact_noted' AND in_use AND NOT withdrawn
    UNION ALL
    SELECT agent_id, as_of, seq, 'object', payload->>'object' FROM derived_records
    WHERE type = 'fact_noted' AND in_use AND NOT withdrawn
),
speakers AS (SELECT agent_id, as_of, seq, 'speaker' AS role, name FROM said WHERE ended > as_of AND name <> ''),
known AS (
    SELECT DISTINCT agent_id, as_of, name FROM facts_named
    UNION SELECT DISTINCT agent_id, as_of, name FROM speakers
    UNION SELECT agent_id, as_of, alias FROM entity_names
    UNION SELECT agent_id, as_of, entity FROM entity_names
),
words AS (
    SELECT agent_id, as_of, seq,
        unnest(list_distinct(regexp_extract_all(text, '\p{Lu}[\p{L}\p{N}''-]*(?: \p{Lu}[\p{L}\p{N}''-]*)*'))) AS name
    FROM said WHERE ended > as_of
),
named AS (
    FROM facts_named
    UNION ALL FROM speakers
    UNION ALL SELECT w.agent_id, w.as_of, w.seq, 'message', w.name
        FROM words w JOIN known k ON k.agent_id = w.agent_id AND k.as_of = w.as_of AND k.name = w.name
)
SELECT n.agent_id, n.as_of, n.seq, n.role, n.name, coalesce(e.entity, n.name) AS entity
FROM named n LEFT JOIN entity_names e ON e.agent_id = n.agent_id AND e.as_of = n.as_of AND e.alias = n.name
WHERE n.name <> ''
