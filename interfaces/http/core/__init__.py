"""What every surface of the server shares: routes, guards, keys, tenants, errors, streams and the OpenAPI document."""
