"""Run the command line as `python -m everlog`, the same as the command `everlog`.

Used by Python itself. It must do nothing when it is imported.
"""

import sys

from everlog.interfaces.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
