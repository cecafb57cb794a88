"""The client of `everlog serve`: the API of `open_system` over HTTP, with streams that resume by themselves."""
