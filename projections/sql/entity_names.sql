-- needs: generation_names
-- Each other name of an entity, and the name that the entity is called by, in the generation in use: see
-- `generation_names`.
SELECT agent_id, as_of, alias, entity FROM generation_names WHERE in_use
