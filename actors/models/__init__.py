"""How is a model reached? Endpoints, requests and replies on the wire, files of models, prices."""
