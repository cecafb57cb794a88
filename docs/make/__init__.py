"""Fill the parts of the pages that are made from code: `python -m docs.make` from the folder of the repository."""
