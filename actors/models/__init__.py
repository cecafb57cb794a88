"""Access to models: endpoints, requests and replies on the wire, model files, prices."""
