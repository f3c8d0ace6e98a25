"""Requests are authorized before they are carried out, and leave a line in the audit log."""

import json

import pytest
from structlog.testing import capture_logs

from gardenbus.apiserver.access.authorizer import Authorizer
from gardenbus.apiserver.domain.admission import Admission
from gardenbus.apiserver.domain.authorization.actions import Action, Permit, Rejection, Requester
from gardenbus.apiserver.domain.plugins.table import DEFAULT_PLUGINS
from gardenbus.apiserver.registry.read_cache import ReadCache
from gardenbus.common.api.document import Document, encode
from gardenbus.common.api.garden.scheduling_order import MAX_PRIORITY
from gardenbus.common.api.garden.scheduling_requirements import REQUIREMENTS
from gardenbus.common.api.identity.roles import landscape_roles
from gardenbus.common.api.keys import ObjectKey
from gardenbus.common.ports.bus import Request
from tests.support.authorized_apiserver import SUBJECTS, a_binding, a_secret, members, two_projects
from tests.support.authorized_apiserver import AuthorizedApiserver as Landscape
from tests.support.builders import a_cloudprofile, a_project, a_seed, a_shoot, merged


@pytest.fixture
async def landscape() -> Landscape:
    """See `two_projects`."""
    return await two_projects()


@pytest.mark.parametrize(
    ("user", "tail", "code"),
    [
        ("vera", "get.shoot.garden-dev.apollo", 200),
        ("vera", "list.shoot.garden-dev", 200),
        ("vera", "names.shoot.garden-dev", 200),
        ("vera", "names.shoot", 403),
        ("adam", "names.secret", 403),
        ("seed:aws", "names.shoot", 403),
        ("vera", "get.shoot.garden-prod.zeus", 403),
        ("vera", "get.secret.garden-dev.dev-cloud", 403),
        ("vera", "list.shoot", 403),
        ("adam", "get.secret.garden-dev.dev-cloud", 200),
        ("adam", "get.secret.garden-prod.prod-cloud", 403),
        ("adam", "get.secret.garden-prod.missing", 403),
        ("adam", "list.secret", 403),
        ("adam", "list.seed", 200),
        ("adam", "get.project._.dev", 200),
        ("adam", "get.project._.prod", 403),
        ("adam", "list.project", 403),
        ("eve", "list.shoot", 200),
        ("eve", "list.secret", 403),
        ("root", "list.secret", 200),
        ("nobody", "kinds", 200),
        ("nobody", "census", 403),
        ("nobody", "frobnicate", 400),
        ("seed:aws", "get.secret.garden-dev.dev-cloud", 200),
        ("seed:aws", "get.secretbinding.garden-dev.cloud", 200),
        ("seed:aws", "get.shoot.garden-dev.apollo", 200),
        ("seed:aws", "get.project._.dev", 200),
        ("seed:aws", "get.secret.garden-prod.prod-cloud", 403),
        ("seed:aws", "get.shoot.garden-prod.zeus", 403),
        ("seed:aws", "get.project._.prod", 403),
        ("seed:aws", "list.secret.garden-dev", 403),
        ("scheduler:mine", "list.shoot", 200),
        ("scheduler:mine", "get.secret.garden-dev.dev-cloud", 403),
        ("bootstrap:4f2a91", "list.seed", 403),
    ],
)
async def test_reads_are_authorized(landscape: Landscape, user: str, tail: str, code: int) -> None:
    assert await landscape.code(user, tail) == code


async def test_writes_are_authorized_object_by_object(landscape: Landscape) -> None:
    documents = [a_secret("new"), a_secret("new", "garden-prod")]
    response = await landscape.response("adam", "apply", {"apiVersion": "v1", "kind": "List", "items": documents})
    assert [each["ok"] for each in response["result"]] == [True, False]
    assert response["error"]["code"] == 403
    assert await landscape.store.get(ObjectKey("secret", "garden-prod", "new")) is None
    assert await landscape.code("vera", "apply", a_secret("newer")) == 403
    assert await landscape.code("vera", "patch.shoot.garden-dev.apollo", {"metadata": {"labels": {"a": "b"}}}) == 403
    assert await landscape.code("adam", "patch.shoot.garden-dev.apollo", {"metadata": {"labels": {"a": "b"}}}) == 200
    assert await landscape.code("adam", "delete.secret.garden-prod.prod-cloud") == 403
    assert await landscape.code("adam", "delete.secret.garden-dev.new") == 200


async def test_members_write_no_cluster_scoped_objects_and_none_in_garden(landscape: Landscape) -> None:
    for document in (a_seed("own"), a_project("own"), a_cloudprofile(), landscape_roles({"adam": "operator"})):
        assert await landscape.code("adam", "apply", document) == 403, document
    assert await landscape.code("adam", "bind", {"namespace": "garden-dev", "name": "apollo", "seed": "gcp"}) == 403
    assert await landscape.code("adam", "scale", {"name": "set", "replicas": 9}) == 403


@pytest.mark.parametrize("user", ["gail", "adam", "paul", "eve", "nobody", "seed:aws", "scheduler:mine"])
async def test_nobody_but_operators_writes_what_lets_others_in(landscape: Landscape, user: str) -> None:
    await landscape.create([
        a_project("garden", "garden", spec=members(gail="admin")),
        a_secret("credentials-1", "garden", labels={"gardenbus.io/purpose": "credentials"}),
    ])  # fmt: skip
    requesting = a_secret("mine", "garden", labels={"resources.gardener.cloud/purpose": "token-requestor"})
    for document in (a_secret("credentials-2", "garden"), requesting, landscape_roles({user: "operator"})):
        assert await landscape.code(user, "apply", document) == 403, document
    label = {"metadata": {"labels": {"a": "b"}}}
    assert await landscape.code(user, "patch.secret.garden.credentials-1", label) == 403
    assert await landscape.code(user, "patch.configmap.garden.landscape-roles", {"data": {user: "operator"}}) == 403
    assert await landscape.code(user, "delete.secret.garden.credentials-1") == 403
    assert await landscape.code(user, "apply", a_secret("bootstrap-token-abcdef", "kube-system")) == 403
    assert await landscape.code("root", "patch.secret.garden.credentials-1", label) == 200


async def test_the_seed_of_a_shoot_is_not_chosen_by_members(landscape: Landscape) -> None:
    placed = a_shoot("new", spec={"seedName": "aws"})
    response = await landscape.response("adam", "apply", placed)
    assert response["error"]["code"] == 403
    assert "bind" in response["error"]["message"]
    assert await landscape.code("adam", "patch.shoot.garden-dev.apollo", {"spec": {"seedName": "gcp"}}) == 403
    assert await landscape.code("root", "apply", placed) == 200


async def test_a_priority_above_what_a_project_allows_takes_the_verb_prioritize(landscape: Landscape) -> None:
    def of_priority(priority: int) -> Document:
        return a_shoot("hasty", metadata={"annotations": {REQUIREMENTS: f"priority: {priority}"}})

    def allowing(priority: str | None) -> Document:
        return {"metadata": {"annotations": {MAX_PRIORITY: priority}}}

    assert await landscape.code("adam", "apply", of_priority(-1)) == 200
    assert await landscape.code("adam", "apply", of_priority(1)) == 403
    assert await landscape.code("adam", "patch.project._.dev", allowing("100")) == 403
    assert await landscape.code("root", "patch.project._.dev", allowing("100")) == 200
    assert await landscape.code("adam", "apply", of_priority(100)) == 200
    assert await landscape.code("adam", "apply", of_priority(101)) == 403
    assert await landscape.code("root", "apply", of_priority(101)) == 200
    assert await landscape.code("adam", "apply", merged(of_priority(101), {"metadata": {"labels": {"a": "b"}}})) == 200
    assert await landscape.code("adam", "patch.project._.dev", allowing(None)) == 403


async def test_members_of_a_project_are_changed_by_those_who_manage_them(landscape: Landscape) -> None:
    patch = {"spec": members(adam="admin", mallory="admin")}
    assert await landscape.code("adam", "patch.project._.dev", patch) == 403
    assert await landscape.code("adam", "patch.project._.dev", {"spec": {"description": "ours"}}) == 200
    assert await landscape.code("uma", "patch.project._.dev", patch) == 200
    assert await landscape.code("mallory", "get.shoot.garden-dev.apollo") == 200


async def test_a_role_that_is_taken_away_ends_with_the_next_request(landscape: Landscape) -> None:
    assert await landscape.code("root", "patch.configmap.garden.landscape-roles", {"data": {"eve": None}}) == 200
    assert await landscape.code("eve", "list.shoot") == 403


async def test_a_binding_refers_to_no_secret_that_its_writer_cannot_read(landscape: Landscape) -> None:
    theirs = a_binding("theirs", "prod-cloud", secret_namespace="garden-prod")
    response = await landscape.response("adam", "apply", theirs)
    assert response["error"]["code"] == 403
    assert 'cannot get secrets in namespace "garden-prod"' in response["error"]["message"]
    assert await landscape.code("root", "apply", theirs) == 200


async def test_a_binding_refers_to_nothing_of_its_namespace_that_its_writer_cannot_read(landscape: Landscape) -> None:
    internal: Document = {
        "apiVersion": "core.gardener.cloud/v1beta1",
        "kind": "InternalSecret",
        "metadata": {"name": "theirs", "namespace": "garden-dev"},
    }
    await landscape.create([internal])
    reference = {"apiVersion": "v1", "kind": "Secret", "name": "dev-cloud", "namespace": "garden-dev"}
    ours: Document = {
        "apiVersion": "security.gardener.cloud/v1alpha1",
        "kind": "CredentialsBinding",
        "metadata": {"name": "ours", "namespace": "garden-dev"},
        "provider": {"type": "aws"},
        "credentialsRef": reference,
    }
    theirs = ours | {
        "credentialsRef": reference
        | {"apiVersion": "core.gardener.cloud/v1beta1", "kind": "InternalSecret", "name": "theirs"}
    }
    rejected = await landscape.response("adam", "apply", theirs)
    assert rejected["error"]["code"] == 403
    assert rejected["error"]["message"].endswith(
        "credentialsbinding garden-dev/ours cannot refer to internalsecret garden-dev/theirs: "
        'user "adam" cannot get internalsecrets in namespace "garden-dev"'
    )
    assert await landscape.code("adam", "apply", ours) == 200
    for patch in ({"kind": "InternalSecret", "name": "theirs"}, {"kind": "InternalSecret"}):
        where = "patch.credentialsbinding.garden-dev.ours"
        assert await landscape.code("adam", where, {"credentialsRef": patch}) == 403, "whatever the patch leaves out"
    joint = theirs | {"metadata": {"name": "joint", "namespace": "garden-dev"}}
    assert await landscape.code("root", "apply", joint) == 200
    where = "patch.credentialsbinding.garden-dev.joint"
    assert await landscape.code("adam", where, {"metadata": {"labels": {}}}) == 200


async def test_members_name_what_they_may_read_in_shoots(landscape: Landscape) -> None:
    named = {"name": "a", "resourceRef": {"apiVersion": "v1", "kind": "Secret", "name": "dev-cloud"}}
    shoot = a_shoot("artemis", spec={"secretBindingName": "cloud", "resources": [named]})
    assert await landscape.code("adam", "apply", shoot) == 200


async def test_a_scheduler_of_ones_own_binds_its_shoots_alone(landscape: Landscape) -> None:
    await landscape.create([a_shoot("mine", spec={"schedulerName": "mine"}), a_shoot("other")])
    bind = {"namespace": "garden-dev", "seed": "aws"}
    assert await landscape.code("scheduler:mine", "bind", {**bind, "name": "other"}) == 403
    assert await landscape.code("scheduler:mine", "bind", {**bind, "name": "missing"}) == 403
    assert await landscape.code("scheduler:mine", "bind", {**bind, "name": "mine"}) == 200


async def test_a_precondition_on_what_one_cannot_read_is_refused(landscape: Landscape) -> None:
    headers = {
        "Nats-Request-Info": '{"user": "adam"}',
        "Gardenbus-Condition": "secret.garden-prod.prod-cloud=7",
    }
    subject = SUBJECTS.as_user("adam", "api.apply")
    response = json.loads(await landscape.handler.handle(Request(subject, encode(a_secret("new")), headers)))
    assert response["error"]["code"] == 403


async def test_the_landscapes_own_account_is_not_asked_for_a_role(landscape: Landscape) -> None:
    response = await landscape.response("", "list.secret", is_insider=True)
    assert response["ok"]


async def test_an_operator_who_speaks_for_somebody_has_that_ones_rights(landscape: Landscape) -> None:
    response = await landscape.response("vera", "get.secret.garden-dev.dev-cloud", is_insider=True)
    assert response["error"]["code"] == 403


async def test_whoami_says_who_the_server_has_proved_one_to_be(landscape: Landscape) -> None:
    def seen(response: Document) -> tuple[str, str]:
        return response["result"]["user"], response["result"]["role"]

    assert seen(await landscape.response("vera", "whoami")) == ("vera", "user")
    assert seen(await landscape.response("eve", "whoami")) == ("eve", "viewer")
    assert seen(await landscape.response("seed:aws", "whoami")) == ("seed:aws", "gardenlet")
    assert seen(await landscape.response("", "whoami", is_insider=True)) == ("operator", "operator")


async def test_can_i_is_the_decision_without_the_request(landscape: Landscape) -> None:
    async def allowed(requester: str, **review: str) -> bool:
        return (await landscape.response(requester, "can-i", review))["result"]["allowed"]

    assert await allowed("adam", verb="create", kind="shoots", namespace="garden-dev")
    assert not await allowed("adam", verb="create", kind="shoots", namespace="garden-prod")
    assert not await allowed("adam", verb="create", kind="shoots")
    assert not await allowed("adam", verb="create", kind="shoots/binding", namespace="garden-dev")
    assert await allowed("root", verb="create", kind="shoots/binding", namespace="garden-dev")
    assert await allowed("seed:aws", verb="get", kind="secret", name="dev-cloud", namespace="garden-dev")
    assert await allowed("root", verb="get", kind="secret", namespace="garden-dev", user="adam")
    assert not await allowed("root", verb="get", kind="secret", namespace="garden-dev", user="vera")
    assert await allowed("eve", verb="census", kind="")
    assert await allowed("adam", verb="csr.get", kind="")
    assert not await allowed("adam", verb="census", kind="")


async def test_only_operators_ask_for_others(landscape: Landscape) -> None:
    assert await landscape.code("adam", "can-i", {"verb": "get", "kind": "secret", "user": "root"}) == 403
    assert await landscape.code("seed:aws", "can-i", {"verb": "get", "kind": "secret", "user": "root"}) == 403


async def test_can_i_lists_what_is_allowed_in_a_namespace(landscape: Landscape) -> None:
    response = await landscape.response("vera", "can-i", {"namespace": "garden-dev"})
    rules = {rule["kind"]: rule["verbs"] for rule in response["result"]["rules"]}
    assert rules["shoots.core.gardener.cloud"] == ["get", "list", "watch", "explain"]
    assert "secrets" not in rules


async def test_a_refusal_is_logged_at_once_and_then_once_a_minute_with_how_many_there_were(
    landscape: Landscape,
) -> None:
    with capture_logs() as logs:
        for _ in range(5):
            await landscape.code("vera", "get.secret.garden-dev.dev-cloud")
        landscape.clock.advance(61)
        await landscape.code("otto", "get.secret.garden-prod.prod-cloud")
    lines = [line for line in logs if line["event"] == "request.forbidden" and line["user"] == "vera"]
    assert [(line["user"], line["verb"], line["object"], line["times"]) for line in lines] == [
        ("vera", "get", "secret garden-dev/dev-cloud", 1),
        ("vera", "get", "secret garden-dev/dev-cloud", 4),
    ]
    assert all(line["request_id"] and line["rule"] == "role" for line in lines)


async def test_privileged_writes_are_logged(landscape: Landscape) -> None:
    with capture_logs() as logs:
        await landscape.code("adam", "apply", a_secret("new"))
        await landscape.code("adam", "patch.shoot.garden-dev.apollo", {"metadata": {"labels": {"a": "b"}}})
        await landscape.code("uma", "patch.project._.dev", {"spec": members(uma="uam")})
        await landscape.code("root", "delete.secret.garden-prod.prod-cloud")
    lines = [line for line in logs if line["event"] == "request.audited"]
    assert [(line["user"], line["verb"], line["object"], line["outcome"]) for line in lines] == [
        ("adam", "apply", "secret garden-dev/new", "created"),
        ("uma", "patch", "project dev", "configured"),
        ("root", "delete", "secret garden-prod/prod-cloud", "deleted"),
    ]


async def test_a_project_is_not_moved_into_a_namespace_that_is_not_its_own(landscape: Landscape) -> None:
    for namespace in ("garden-prod", "garden", "fleet-member-paris", "garden-free"):
        await landscape.response("otto", "patch.project._.dev", {"spec": {"namespace": namespace}})
        stored = await landscape.store.get(ObjectKey("project", "", "dev"))
        assert stored is not None
        assert stored.document()["spec"]["namespace"] == "garden-dev", namespace


async def test_members_take_their_verb_as_long_as_the_plugin_that_asks_for_it_is_on() -> None:
    on, off = Landscape(), Landscape(Admission(one for one in DEFAULT_PLUGINS if one.name != "CustomVerbAuthorizer"))
    project = a_project("dev", "garden-dev", spec=members(adam="admin", uma="uam"))
    body = {"kind": "Project", "name": "dev", "patch": {"spec": members(adam="admin", uma="uam", carl="viewer")}}
    for landscape in (on, off):
        await landscape.create([landscape_roles({}), project])
    with capture_logs() as logs:
        rejected = await on.response("adam", "patch", body)
    assert rejected["error"]["code"] == 403
    assert "spec.members of project dev: that takes the verb manage-members" in rejected["error"]["message"]
    assert [each["event"] for each in logs if each["event"].startswith("request.")] == ["request.forbidden"]
    assert await on.code("uma", "patch", body) == 200
    assert await off.code("adam", "patch", body) == 200


@pytest.mark.parametrize(
    ("user", "role", "kinds", "namespaces", "projects"),
    [
        ("vera", "user", {"seed", "cloudprofile", "exposureclass"}, {"garden-dev"}, {"dev"}),
        ("adam", "user", {"seed", "cloudprofile", "exposureclass"}, {"garden-dev"}, {"dev"}),
        ("nobody", "user", {"seed", "cloudprofile", "exposureclass"}, set[str](), set[str]()),
    ],
)
async def test_people_are_told_what_they_may_read(
    landscape: Landscape, user: str, role: str, kinds: set[str], namespaces: set[str], projects: set[str]
):
    reply = (await landscape.response(user, "readable"))["result"]
    assert (reply["role"], set(reply["kinds"]), set(reply["namespaces"]), set(reply["projects"])) == (
        role,
        kinds,
        namespaces,
        projects,
    )
    for listed in reply["namespaces"].values():
        assert "shoot" in listed
        assert "secret" not in listed


@pytest.mark.parametrize(("user", "role"), [("eve", "viewer"), ("root", "operator")])
async def test_with_a_role_in_the_landscape_all_is_read_but_credentials(landscape: Landscape, user: str, role: str):
    reply = (await landscape.response(user, "readable"))["result"]
    assert reply["role"] == role
    assert {"shoot", "managedseedset", "event"} <= set(reply["kinds"])
    assert not {"secret", "internalsecret", "shootstate"} & set(reply["kinds"])


@pytest.mark.parametrize(
    ("user", "kind", "namespace", "code"),
    [
        ("vera", "shoots", "garden-dev", 200),
        ("vera", "shoots", "garden-prod", 403),
        ("vera", "shoots", None, 403),
        ("vera", "shoots", "*", 400),
        ("vera", "shoots", ">", 400),
        ("vera", "shoots", "garden-dev.apollo", 400),
        ("vera", "shoots", "", 400),
        ("vera", "secrets", "garden-dev", 403),
        ("vera", "events", "garden-dev", 200),
        ("vera", "events", "garden-prod", 403),
        ("vera", "seeds", None, 200),
        ("vera", "leases", None, 400),
        ("adam", "secrets", "garden-dev", 200),
        ("eve", "shoots", None, 200),
        ("eve", "secrets", None, 403),
    ],
)
async def test_whoever_may_not_watch_something_gets_not_even_its_position(
    landscape: Landscape, user: str, kind: str, namespace: str | None, code: int
):
    assert await landscape.code(user, "watch", {"scopes": [{"kind": kind, "namespace": namespace}]}) == code


async def test_one_scope_that_is_forbidden_refuses_the_watch(landscape: Landscape):
    scopes = [{"kind": "shoot", "namespace": "garden-dev"}, {"kind": "shoot", "namespace": "garden-prod"}]
    rejected = await landscape.response("vera", "watch", {"scopes": scopes})
    assert rejected["error"]["message"].startswith('user "vera" cannot watch shoots in namespace "garden-prod"')


async def test_who_may_ask_without_naming_a_user_is_the_operator(landscape: Landscape) -> None:
    """Nobody else may publish there where identities are on: what is made so is the operator's."""
    made = await landscape.response("", "apply", a_shoot("raw", spec={"secretBindingName": "cloud"}), is_insider=True)
    assert made["result"]["metadata"]["annotations"]["gardener.cloud/created-by"] == "operator"


async def test_nothing_behind_a_document_that_is_not_permitted_is_tried(landscape: Landscape) -> None:
    documents = [a_secret("first"), a_secret("second", "garden-prod"), a_secret("third"), a_secret("fourth", "")]
    response = await landscape.response("adam", "apply", {"apiVersion": "v1", "kind": "List", "items": documents})
    assert [each["ok"] for each in response["result"]] == [True, False, False, False]
    assert [each["error"]["code"] for each in response["result"][1:]] == [403, 403, 403]
    assert response["result"][3]["error"]["message"] == "not carried out, as document 2 is not permitted"
    assert await landscape.store.get(ObjectKey("secret", "garden-dev", "third")) is None


@pytest.mark.parametrize("verb", ["apply", "delete"])
async def test_a_message_is_decided_about_once_for_each_namespace_and_kind(
    landscape: Landscape, verb: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    decided: list[Action] = []
    decide = Authorizer.decide

    async def counted(self: Authorizer, requester: Requester, action: Action, reads: ReadCache) -> Permit | Rejection:
        decided.append(action)
        return await decide(self, requester, action, reads)

    monkeypatch.setattr(Authorizer, "decide", counted)
    secrets = [a_secret(f"secret{number}") for number in range(50)]
    config_maps = [
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": f"map{number}", "namespace": "garden-dev"}}
        for number in range(50)
    ]
    await landscape.response("adam", verb, {"apiVersion": "v1", "kind": "List", "items": secrets + config_maps})
    assert sorted((action.kind, action.namespace) for action in decided) == [
        ("configmap", "garden-dev"),
        ("secret", "garden-dev"),
    ]
    decided.clear()
    foreign = [a_secret(f"secret{number}", "garden-prod") for number in range(50)]
    response = await landscape.response("adam", verb, {"apiVersion": "v1", "kind": "List", "items": foreign})
    assert len(decided) == 1
    assert {each["error"]["code"] for each in response["result"]} == {403}
