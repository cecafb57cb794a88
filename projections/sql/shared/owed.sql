-- What a record adds to the open work of its turn, out of its payload: `f_owed` of `store/sealed/derived_columns.py`.
CASE WHEN starts_with(payload, '{"erased":true') THEN NULL
    WHEN type = 'model_reply' THEN coalesce(TRY(json_array_length(payload, '$.calls')), 0)::BIGINT
    WHEN type = 'function_result' THEN CASE WHEN contains(payload, '"approval":') THEN 0 ELSE -1 END
    WHEN type IN ({inputs})
        THEN CASE WHEN coalesce(TRY((payload->>'$.imported')::BOOLEAN), false) THEN 0 ELSE 1 END END
