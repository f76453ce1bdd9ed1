"""A server that learns while it predicts: a log with a learner attached (extra ``serve``)."""

from forel.serve.client import AsyncClient, Client, ServerError
from forel.serve.connection import Limits
from forel.serve.run import ServeOptions, Server, serve

__all__ = ["AsyncClient", "Client", "Limits", "ServeOptions", "Server", "ServerError", "serve"]
