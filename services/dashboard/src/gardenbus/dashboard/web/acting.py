"""Requests to the API in the name of whoever sent a request here."""

from typing import cast

from starlette.requests import Request

from gardenbus.dashboard.api_client import GardenApiClient
from gardenbus.dashboard.web.sessions import Session


def session_of(request: Request) -> Session:
    """The session that SecurityMiddleware has found."""
    return cast("Session", request.scope["state"]["session"])


def acting(api: GardenApiClient, request: Request) -> GardenApiClient:
    """The API as the user of a request; as the dashboard where nobody logs in."""
    user = session_of(request).user
    return api.acting_as(user) if user else api
