"""The archive: what agents keep and say, as vectors beside the log. It can always be made again from the log."""
