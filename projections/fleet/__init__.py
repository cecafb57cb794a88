"""Parts of the views over all agents: tables of forks and names, the records of one tenant, types of columns."""
