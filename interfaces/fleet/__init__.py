"""How is a fleet run? The cluster's commands and the load that tests it."""
