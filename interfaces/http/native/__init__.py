"""The native API, `/api/v1`: the resources of everlog in the words of the glossary."""
