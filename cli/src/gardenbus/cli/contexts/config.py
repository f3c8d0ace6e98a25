"""Config file: landscapes by name, and the current one.

```yaml
current-context: lab
contexts:
  lab:
    nats-url: nats://nats.example.com:4222
    credentials: ~/.config/gardenbus/lab.credentials
    prefix: garden
  here:
    dir: /home/ann/landscape/.gardenbus
```

It is $GARDENBUS_CONFIG, or gardenbus/config.yaml below $XDG_CONFIG_HOME or ~/.config. A context has `nats-url` or
`dir`. `credentials` is a file as `identity issue` writes one (`contexts.credential_files`), or one with `user:password`
or a token for a NATS without identities; `ca` one of authorities, for TLS. `user` says whose an nkey is.
"""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from gardenbus.common.errors import BadRequest

_NOT_IN_A_URL = frozenset("/?#,[]\\")
_FIELDS = "a context has nats-url, with credentials, user, ca and prefix where it needs them, or dir"


class ContextEntry(msgspec.Struct, frozen=True, rename="kebab", omit_defaults=True, forbid_unknown_fields=True):
    """One context: a bus and who one is there, or the state directory of a landscape of one's own."""

    nats_url: str = ""
    credentials: str = ""
    """Path of a file that says who one is; `~` is one's home."""
    user: str = ""
    """Owner of an nkey in `credentials`."""
    ca: str = ""
    """Path of the authorities that the server's certificate may be of; "" for those of the system."""
    prefix: str = ""
    dir: str = ""


class ContextsConfig(msgspec.Struct, frozen=True, rename="kebab", omit_defaults=True):
    """The whole file. `current_context` is "" when there is none."""

    current_context: str = ""
    contexts: dict[str, ContextEntry] = {}

    def named(self, name: str) -> ContextEntry:
        """One of the contexts. Raises BadRequest with those that there are."""
        if found := self.contexts.get(name):
            return found
        there = f"there is {', '.join(sorted(self.contexts))}" if self.contexts else "there is none yet"
        raise BadRequest(f"no context {name!r}: {there}; `gardenbus config set-context` makes one")


class _File(msgspec.Struct, frozen=True, rename="kebab", forbid_unknown_fields=True):
    current_context: str | None = None
    contexts: dict[str, Any] | None = None


def config_file(environ: Mapping[str, str] | None = None) -> Path | None:
    """Path of the config file; None without a home directory."""
    environment = os.environ if environ is None else environ
    if given := environment.get("GARDENBUS_CONFIG"):
        return Path(given)
    if below := environment.get("XDG_CONFIG_HOME"):
        return Path(below) / "gardenbus" / "config.yaml"
    home = environment.get("HOME")
    return Path(home) / ".config" / "gardenbus" / "config.yaml" if home else None


def read_config(file: Path | None) -> ContextsConfig:
    """The file's content; an empty one where there is none. Raises BadRequest, which names the field at fault."""
    if file is None:
        return ContextsConfig()
    try:
        text = file.read_text(encoding="utf-8")
    except FileNotFoundError:
        return ContextsConfig()
    except (OSError, UnicodeDecodeError) as error:
        raise BadRequest(f"{file} cannot be read: {error}") from error
    import yaml  # noqa: PLC0415  who has no such file need not pay for it

    try:
        content = msgspec.convert(_or_empty(yaml.safe_load(text)), _File)
    except msgspec.ValidationError as error:
        raise BadRequest(f"{file}: {error}; it has current-context and contexts") from error
    except (yaml.YAMLError, ValueError, RecursionError) as error:  # a date that is none, nesting too deep
        raise BadRequest(f"{file} is no YAML: {error}") from error
    contexts = {name: _read_context(file, name, value) for name, value in (content.contexts or {}).items()}
    config = ContextsConfig(content.current_context or "", contexts)
    try:
        msgspec.json.encode(config)
    except UnicodeEncodeError as error:  # half of a surrogate pair: no terminal and no server takes it
        raise BadRequest(f"{file}: {error}") from error
    return config


def context_names(incomplete: str) -> list[str]:
    """Names of contexts that begin so; none where the file cannot be read: a completion never fails."""
    try:
        return [name for name in sorted(read_config(config_file()).contexts) if name.startswith(incomplete)]
    except BadRequest:
        return []


def _or_empty(value: Any) -> Any:
    return {} if value is None else value


def _read_context(file: Path, name: str, value: Any) -> ContextEntry:
    try:
        landscape = msgspec.convert(_or_empty(value), ContextEntry)
        check_context(landscape)
    except (msgspec.ValidationError, BadRequest, ValueError) as error:
        raise BadRequest(f"{file}: context {name}: {error}") from error
    return landscape


def check_context(landscape: ContextEntry) -> None:
    """Raise BadRequest unless a context says one thing, and says it wherever one stands."""
    if bool(landscape.nats_url) == bool(landscape.dir):
        raise BadRequest(f"nats-url or dir, {'not both' if landscape.dir else 'one of them'}: {_FIELDS}")
    for field in ("credentials", "user", "ca"):
        if landscape.dir and getattr(landscape, field):
            raise BadRequest(f"{field} goes with nats-url, not with dir: {_FIELDS}")
    for field in ("dir", "credentials", "ca"):
        path = str(getattr(landscape, field))
        if path and not path.startswith(("/", "~")):
            raise BadRequest(f"{field}: {path} depends on where one stands: write a path that begins with / or ~")


def write_config(file: Path | None, config: ContextsConfig) -> None:
    """Replace the file, whole, for its owner's eyes only. Raises BadRequest when it cannot be written."""
    if file is None:
        raise BadRequest("no place for a config file: set GARDENBUS_CONFIG")
    import tempfile  # noqa: PLC0415  who only reads need not pay for it

    import yaml  # noqa: PLC0415  as above

    text = yaml.safe_dump(msgspec.to_builtins(config), sort_keys=False, allow_unicode=True)
    try:
        place = file.resolve()  # a link to it stays a link
        place.parent.mkdir(parents=True, exist_ok=True)
        descriptor, name = tempfile.mkstemp(prefix=f".{place.name}.", dir=place.parent)  # its mode is 0600
        draft = Path(name)
        try:
            with os.fdopen(descriptor, "w", encoding="utf-8") as opened:
                opened.write(text)
            draft.replace(place)
        finally:
            draft.unlink(missing_ok=True)
    except (OSError, RuntimeError) as error:
        raise BadRequest(f"cannot write {file}: {error}") from error


def url_of(landscape: ContextEntry) -> str:
    """The bus' address with who one is. Raises BadRequest when the credentials cannot be used."""
    if not landscape.credentials:
        return landscape.nats_url
    file = Path(landscape.credentials).expanduser()
    try:
        who = file.read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise BadRequest(f"credentials: {file} cannot be read: {error}") from error
    if not who or len(who.split()) > 1:
        raise BadRequest(f"credentials: {file} is to be one line, user:password or a token")
    if not who.isascii() or not _NOT_IN_A_URL.isdisjoint(who):  # the client takes them as they stand in the address
        raise BadRequest(f"credentials: {file} is to have no {' '.join(sorted(_NOT_IN_A_URL))} and only ASCII")
    return ",".join(_with_user(address, who) for address in landscape.nats_url.split(","))


def _with_user(address: str, who: str) -> str:
    scheme, _, rest = address.rpartition("://")
    return f"{scheme or 'nats'}://{who}@{rest.rpartition('@')[2]}"
