"""KubeconfigSecret: a kubeconfig in a Secret holds credentials, and nothing that has its reader do something.

Who reads a file, runs a command or acts as somebody else because a kubeconfig says so does it with rights of its own.
Facts: none. Source: Gardener's admission controller, `pkg/admissioncontroller/webhook/admission/kubeconfigsecret`.
"""

from base64 import b64decode
from typing import Any

from gardenbus.apiserver.domain.plugins.plugin import AdmissionPlugin, AdmissionRule, Change
from gardenbus.apiserver.domain.rejection_messages import RejectionMessage
from gardenbus.apiserver.domain.related_objects import RelatedObjects
from gardenbus.apiserver.domain.validation.field_cursor import invalid
from gardenbus.common.api.document import Document, section
from gardenbus.common.api.document_parts import is_deleting, mappings
from gardenbus.common.api.manifests.strict_yaml import read_yaml
from gardenbus.common.errors import BadRequest, FieldProblem

_KEY = "kubeconfig"
_ALLOWED = frozenset({"client-certificate-data", "client-key-data", "token", "username", "password"})
_NO_KUBECONFIG = RejectionMessage("is no kubeconfig: {problem}")
_NOT_ALLOWED = RejectionMessage(f"users must not have {{field}}: only {', '.join(sorted(_ALLOWED))}")


def _admit(secret: Document, change: Change, _related: RelatedObjects) -> None:
    if is_deleting(secret):
        return
    for field in ("data", "stringData"):
        value = section(secret, field).get(_KEY)
        if isinstance(value, str) and value and value != section(change.old or {}, field).get(_KEY):
            text = value if field == "stringData" else b64decode(value).decode(errors="replace")
            if problems := _problems(f"{field}.{_KEY}", text):
                raise invalid(problems)


def _problems(path: str, text: str) -> list[FieldProblem]:
    try:
        values: list[Any] = read_yaml(text)
    except BadRequest as error:
        return [FieldProblem(path, _NO_KUBECONFIG(problem=error.message))]
    if len(values) != 1 or not isinstance(values[0], dict):
        return [FieldProblem(path, _NO_KUBECONFIG(problem="must be a YAML map"))]
    users = mappings(section({"": values[0]}, "").get("users"))
    return [problem for user in users for problem in _user_problems(path, section(user, "user"))]


def _user_problems(path: str, user: Document) -> list[FieldProblem]:
    """Problems of a user; what is empty has no effect."""
    stated = {name for name, value in user.items() if value not in (None, "", [], {})}
    return [FieldProblem(path, _NOT_ALLOWED(field=name)) for name in sorted(stated - _ALLOWED)]


PLUGIN = AdmissionPlugin(
    name="KubeconfigSecret",
    acts="rejects a kubeconfig in a Secret with files, commands, other providers of credentials or impersonation",
    rejections=(_NO_KUBECONFIG, _NOT_ALLOWED),
    rules=(AdmissionRule(("Secret",), admit=_admit),),
)
