"""Share among all surfaces of the server: routes, guards, keys, tenants, errors, streams and the OpenAPI document."""
