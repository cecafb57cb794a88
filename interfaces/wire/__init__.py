"""Define what is sent over HTTP: the structs of requests and answers, which the server and the client share."""
