"""Content negotiation: the form of a response by the Accept header.

Responses are JSON or YAML, never protobuf: every client that prefers protobuf also takes JSON.
"""

from typing import NamedTuple

from gardenbus.common.errors import BadRequest

JSON, YAML = "application/json", "application/yaml"
_JSON_TYPES = frozenset({JSON, "application/*", "*/*"})
_YAML_TYPES = frozenset({YAML, "text/yaml", "application/x-yaml"})

OBJECT, TABLE, METADATA, DISCOVERY = "", "Table", "PartialObjectMetadata", "APIGroupDiscoveryList"
_FORMS = {TABLE: TABLE, METADATA: METADATA, f"{METADATA}List": METADATA, DISCOVERY: DISCOVERY}
_VERSIONS = {"meta.k8s.io": ("v1", "v1beta1"), "apidiscovery.k8s.io": ("v2", "v2beta1")}


class NotAcceptable(BadRequest):
    """No form of the response is one that the client takes."""

    code = 406
    reason = "NotAcceptable"


class Accepted(NamedTuple):
    """The form of a response: its media type, and what it is shown as."""

    media_type: str = JSON
    form: str = OBJECT
    version: str = ""

    @property
    def content_type(self) -> str:
        """The header of the response; discovery names its form there, as clients look for it."""
        if self.form == DISCOVERY:
            return f"{self.media_type};g=apidiscovery.k8s.io;v={self.version};as={DISCOVERY}"
        return self.media_type


def accepted(header: str, *forms: str) -> Accepted:
    """The first form of the header that there is; `forms` besides the object itself. Raises NotAcceptable."""
    options = sorted((_option(part) for part in header.split(",") if part.strip()), key=lambda each: -each[0])
    for _, media_type, parameters in options:
        wanted = _supported(media_type)
        if wanted is None:
            continue
        shown = parameters.get("as")
        if shown is None:
            return Accepted(wanted)
        form, version = _FORMS.get(shown, ""), parameters.get("v", "")
        if form in forms and version in _VERSIONS.get(parameters.get("g", ""), ()):
            return Accepted(wanted, form, version)
    if not options:
        return Accepted()
    raise NotAcceptable(f"only the following media types are accepted: {JSON}, {YAML}")


def _supported(media_type: str) -> str | None:
    if media_type in _JSON_TYPES:
        return JSON
    return YAML if media_type in _YAML_TYPES else None


def _option(text: str) -> tuple[float, str, dict[str, str]]:
    media_type, *rest = (part.strip() for part in text.split(";"))
    parameters = {name.strip(): value.strip() for name, _, value in (part.partition("=") for part in rest)}
    try:
        quality = float(parameters.get("q", "1"))
    except ValueError:
        quality = 0.0
    return quality, media_type.lower(), parameters
