"""Tell which everlog and which packages are installed. Imports nothing heavy; reads only the metadata of packages.

Used by `everlog --version` and `everlog doctor`.
"""

NOT_INSTALLED = "not installed"


def installed_version(package: str = "everlog") -> str:
    """Return the version of an installed package, or "not installed": everlog may run from a folder with its source."""
    from importlib import metadata  # loads a parser of mail headers: only these two commands need it

    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return NOT_INSTALLED
