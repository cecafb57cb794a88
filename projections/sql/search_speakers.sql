-- needs: said, recall_memory
-- The names of those who had spoken by then.
SELECT DISTINCT name FROM recall_memory WHERE name <> '' ORDER BY name
