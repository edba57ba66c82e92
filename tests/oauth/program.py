"""A program that speaks OAuth by hand, rightly unless told otherwise, and the person who answers for it."""

import base64
import hashlib
import re
import secrets
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

from django.test import Client

RESOURCE = "http://127.0.0.1:8000/mcp"
REDIRECT = "http://127.0.0.1:4711/callback"
ALL = "knowledgebase:read knowledgebase:write"
READ = "knowledgebase:read"


@dataclass
class Program:
    """A registered client with one PKCE verifier. What a step is given on top replaces or, as None, removes a field."""

    client_id: str
    redirect_uri: str = REDIRECT
    verifier: str = field(default_factory=lambda: secrets.token_urlsafe(32))

    @property
    def challenge(self) -> str:
        digest = hashlib.sha256(self.verifier.encode()).digest()
        return base64.urlsafe_b64encode(digest).decode().rstrip("=")

    def address(self, **changes: Any) -> str:
        """Where it sends its person."""
        asked = {
            "response_type": "code",
            "client_id": self.client_id,
            "redirect_uri": self.redirect_uri,
            "scope": ALL,
            "state": "a state & more",
            "code_challenge": self.challenge,
            "code_challenge_method": "S256",
            "resource": RESOURCE,
        }
        return "/oauth/authorize/?" + _encoded(asked | changes)

    def redeem(self, code: str, /, **changes: Any) -> Any:
        """Come with a code."""
        asked = {
            "grant_type": "authorization_code",
            "client_id": self.client_id,
            "code": code,
            "redirect_uri": self.redirect_uri,
            "code_verifier": self.verifier,
            "resource": RESOURCE,
        }
        return _posted("/oauth/token/", asked | changes)

    def refresh(self, refresh_token: str, /, **changes: Any) -> Any:
        """Come with a refresh token."""
        asked = {
            "grant_type": "refresh_token",
            "client_id": self.client_id,
            "refresh_token": refresh_token,
            "resource": RESOURCE,
        }
        return _posted("/oauth/token/", asked | changes)

    def give_back(self, token: str, /, **changes: Any) -> Any:
        """Revoke a token."""
        return _posted("/oauth/revoke/", {"client_id": self.client_id, "token": token} | changes)


def registered(**changes: Any) -> Program:
    """A program that has just registered."""
    answer = register(**changes)
    assert answer.status_code == 201, answer.content
    return Program(answer.json()["client_id"], answer.json()["redirect_uris"][0])


def register(**changes: Any) -> Any:
    """The answer to a registration."""
    asked = {"client_name": "Claude Code", "redirect_uris": [REDIRECT], "token_endpoint_auth_method": "none"}
    found = {name: value for name, value in (asked | changes).items() if value is not None}
    return Client().post("/oauth/register/", found, content_type="application/json")


def consent(person: Client, program: Program, *, address: str = "", **answers: Any) -> Any:
    """The person opens the page and answers; everything, everywhere unless told otherwise."""
    address = address or program.address()
    page = person.get(address)
    assert page.status_code == 200, page.content
    given = {"decision": "allow", "capability": "write", "where": "everywhere"} | answers
    return person.post(address, given)


def told(answer: Any) -> dict[str, str]:
    """What the client hears in the address that the browser is sent back to."""
    assert answer.status_code == 303, answer.content
    return {name: values[0] for name, values in parse_qs(urlsplit(answer["Location"]).query).items()}


def connect(person: Client, program: Program, **answers: Any) -> dict[str, Any]:
    """The tokens, after all steps."""
    code = told(consent(person, program, **answers))["code"]
    answer = program.redeem(code)
    assert answer.status_code == 200, answer.content
    tokens: dict[str, Any] = answer.json()
    return tokens


def links(page: Any) -> list[str]:
    """Where the links of a page lead."""
    return re.findall(r'href="([^"]+)"', page.content.decode())


def _posted(path: str, fields: dict[str, Any]) -> Any:
    body = _encoded(fields)
    return Client(enforce_csrf_checks=True).post(path, body, content_type="application/x-www-form-urlencoded")


def _encoded(fields: dict[str, Any]) -> str:
    return urlencode({name: value for name, value in fields.items() if value is not None}, doseq=True)
