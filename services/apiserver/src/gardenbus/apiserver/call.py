"""A request as its handler gets it: authorized, with whatever it takes to carry it out."""

from typing import NamedTuple, TypeVar

import msgspec

from gardenbus.apiserver.access.authorizer import AccessGrant
from gardenbus.apiserver.domain.authorization.actions import Requester
from gardenbus.apiserver.domain.query_bodies import read_body
from gardenbus.apiserver.registry.preconditions import Precondition
from gardenbus.apiserver.registry.read_cache import ReadCache
from gardenbus.common.api.field_validation import FieldValidation
from gardenbus.common.api.verbs import Verb
from gardenbus.common.ports.bus import Headers

Fields = TypeVar("Fields", bound=msgspec.Struct)


class RequestOptions(NamedTuple):
    """Requester, precondition (None: none), and dry run of a request."""

    requester: Requester
    condition: Precondition | None
    is_dry_run: bool = False
    validation: FieldValidation = FieldValidation.STRICT
    headers: Headers = {}

    @property
    def user(self) -> str:
        """The user who sent it."""
        return self.requester.user


class Call(NamedTuple):
    """One request. `tail` is what follows the verb in its subject."""

    verb: Verb
    tail: str
    body: bytes
    options: RequestOptions
    granted: AccessGrant
    reads: ReadCache
    is_operator: bool

    @property
    def user(self) -> str:
        """The user who sent it."""
        return self.options.user

    def read(self, wanted: type[Fields]) -> Fields:
        """The body, which may be empty where no field is required. Raises BadRequest."""
        fields = ", ".join(field.encode_name for field in msgspec.structs.fields(wanted))
        return read_body(self.body, wanted, f"the body of {self.verb.name} is {{{fields}}}")

    def done(self) -> None:
        """Have the audit log say that it was carried out, where it is privileged."""
        self.granted.written("done", is_dry_run=self.options.is_dry_run)
