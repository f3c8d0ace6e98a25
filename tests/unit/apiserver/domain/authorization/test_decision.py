"""Who may do what: principal by verb by kind, and what a rejection says."""

import pytest

from gardenbus.apiserver.domain.authorization.actions import UNLIMITED, Action, Permit, Rejection, Requester
from gardenbus.apiserver.domain.authorization.decision import AuthorizationFacts, authorize, role_of
from gardenbus.common.api.document import Document
from gardenbus.common.api.identity.revocations import REVOCATIONS
from gardenbus.common.api.identity.roles import LANDSCAPE_ROLES, landscape_roles
from gardenbus.common.api.identity.signing_requests import USER
from gardenbus.common.api.index_keys import REGION_CONFIG_LABEL
from gardenbus.common.api.keys import ObjectKey
from gardenbus.common.api.users import ANONYMOUS
from tests.support.builders import a_project, a_region_configmap, a_shoot

ROLES = landscape_roles({"root": "operator", "eve": "viewer"})
DEV = a_project(
    "dev",
    "garden-dev",
    spec={
        "owner": {"kind": "User", "name": "olga"},
        "members": [
            {"kind": "User", "name": "vera", "role": "viewer"},
            {"kind": "User", "name": "adam", "role": "admin"},
            {"kind": "User", "name": "otto", "role": "owner"},
            {"kind": "User", "name": "uma", "roles": ["uam", "extension:x"]},
            {"kind": "Group", "name": "readers", "role": "viewer"},
            {"kind": "ServiceAccount", "name": "robot", "namespace": "garden-dev", "role": "admin"},
        ],
    },
)
READ, WRITE = ("get", "list", "watch"), ("create", "update", "patch", "delete")


def decided(
    user: str,
    verb: str,
    kind: str,
    namespace: str | None = "garden-dev",
    name: str = "a",
    **facts: Document | bool | None,
) -> Permit | Rejection:
    """The decision on a request of somebody outside the services."""
    insider = facts.pop("is_insider", False) is True
    existing = {"roles": ROLES, "project": DEV if namespace == "garden-dev" or kind == "project" else None, **facts}
    action = Action(verb, kind, namespace, "" if verb in ("list", "watch") else name)
    return authorize(action, Requester(user, is_insider=insider), AuthorizationFacts(**existing))  # pyright: ignore[reportArgumentType]


def is_allowed(user: str, verb: str, kind: str, namespace: str | None = "garden-dev", name: str = "a") -> bool:
    return isinstance(decided(user, verb, kind, namespace, name), Permit)


def text_of(decision: Permit | Rejection) -> str:
    assert isinstance(decision, Rejection), decision
    return decision.detail


@pytest.mark.parametrize(
    ("user", "verbs", "kinds"),
    [
        ("vera", READ, ("shoot", "configmap", "event", "secretbinding", "quota")),
        ("adam", READ, ("shoot", "configmap", "event", "secret", "workloadidentity")),
        ("adam", WRITE, ("shoot", "configmap", "secret", "secretbinding", "credentialsbinding", "quota")),
        ("adam", ("retry", "explain"), ("shoot",)),
        ("adam", ("create",), ("event",)),
        ("otto", READ + WRITE, ("shoot", "secret", "serviceaccount")),
        ("olga", READ + WRITE, ("shoot", "secret", "serviceaccount")),
        ("eve", READ, ("shoot", "managedseed", "project", "lease", "clusterresourcebinding", "resourceplacement")),
        ("root", READ + WRITE, ("shoot", "secret", "shootstate", "managedseed", "work")),
    ],
)
def test_a_role_allows_these_verbs_on_these_kinds(user: str, verbs: tuple[str, ...], kinds: tuple[str, ...]) -> None:
    denied = [(verb, kind) for verb in verbs for kind in kinds if not is_allowed(user, verb, kind)]
    assert denied == []


@pytest.mark.parametrize(
    ("user", "verbs", "kinds"),
    [
        ("vera", WRITE, ("shoot", "configmap", "secret", "secretbinding")),
        ("vera", READ, ("secret", "shootstate", "managedseed", "workloadidentity")),
        ("vera", ("retry", "bind"), ("shoot",)),
        ("adam", WRITE, ("serviceaccount", "managedseed", "shootstate", "lease", "deployment")),
        ("adam", ("update", "patch", "delete"), ("event",)),
        ("adam", ("bind", "adopt", "forget"), ("shoot",)),
        ("adam", ("scale",), ("managedseedset",)),
        ("uma", READ + WRITE, ("shoot", "secret", "configmap")),
        ("eve", READ, ("secret", "shootstate", "internalsecret")),
        (
            "eve",
            READ,
            ("resourceenvelope", "clusterresourceoverride", "resourceoverridesnapshot", "resourcesnapshot", "work"),
        ),
        ("eve", WRITE, ("shoot", "secret", "seed", "project")),
        ("nobody", READ + WRITE, ("shoot", "secret", "configmap")),
        ("dev", READ + WRITE, ("shoot",)),
    ],
)
def test_nothing_else_is_allowed(user: str, verbs: tuple[str, ...], kinds: tuple[str, ...]) -> None:
    allowed = [(verb, kind) for verb in verbs for kind in kinds if is_allowed(user, verb, kind)]
    assert allowed == []


@pytest.mark.parametrize("user", ["vera", "adam", "otto", "olga", "uma"])
@pytest.mark.parametrize("namespace", ["garden-prod", "garden", None])
def test_a_role_in_a_project_counts_in_its_namespace_only(user: str, namespace: str | None) -> None:
    allowed = [
        (verb, kind)
        for verb in (*READ, *WRITE, "retry", "explain")
        for kind in ("shoot", "secret", "configmap")
        if is_allowed(user, verb, kind, namespace)
    ]
    assert allowed == []


def test_a_project_whose_namespace_is_garden_gives_nobody_rights_there() -> None:
    garden = a_project("garden", "garden", spec=DEV["spec"])
    assert isinstance(decided("otto", "get", "secret", "garden", project=garden), Rejection)


@pytest.mark.parametrize(
    ("user", "allowed"),
    [
        ("vera", {"get"}),
        ("adam", {"get", "update", "patch", "delete"}),
        ("uma", {"get", "update", "patch"}),
        ("otto", {"get", "update", "patch", "delete"}),
        ("nobody", set[str]()),
        ("eve", {"get", "list", "watch"}),
    ],
)
def test_what_a_role_allows_on_the_project_itself(user: str, allowed: set[str]) -> None:
    assert {verb for verb in (*READ, *WRITE) if is_allowed(user, verb, "project", "", "dev")} == allowed


def test_only_uam_and_owners_manage_members() -> None:
    permits = {user: decided(user, "patch", "project", "", "dev") for user in ("adam", "uma", "otto", "root")}
    assert {user: isinstance(permit, Permit) and permit.has("manage-members") for user, permit in permits.items()} == {
        "adam": False,
        "uma": True,
        "otto": True,
        "root": True,
    }


@pytest.mark.parametrize("kind", ["cloudprofile", "exposureclass", "seed"])
def test_everybody_but_bootstrappers_extensions_and_plugins_reads_what_gardener_lets_everybody_read(kind: str) -> None:
    readers = ["nobody", "seed:aws", "member:paris", "scheduler:mine", "vera"]
    users = [*readers, "bootstrap:4f2a91", "extension:aws", "plugin:carbon"]
    assert [user for user in users if is_allowed(user, "list", kind, None)] == readers
    assert not [user for user in users if is_allowed(user, "update", kind, "")]


@pytest.mark.parametrize("verb", ["census", "usage", "waiting", "unknown", "lost", "explain-seed", "explain-drain"])
def test_what_is_asked_about_the_landscape_takes_a_role_there(verb: str) -> None:
    users = ("eve", "root", "adam", "seed:aws", "member:paris", "bootstrap:4f2a91")
    assert [user for user in users if is_allowed(user, verb, "", "", "")] == ["eve", "root"]


def test_a_group_and_a_service_account_have_the_roles_of_their_members() -> None:
    reader = Requester("rita", groups=frozenset({"readers"}))
    by_name = Requester("xaver", groups=frozenset({"gardener.cloud:system:project-member:dev"}))
    of_another = Requester("yuri", groups=frozenset({"gardener.cloud:system:project-member:prod"}))
    facts = AuthorizationFacts(ROLES, DEV)
    create = Action("create", "shoot", "garden-dev", "a")
    assert isinstance(authorize(Action("get", "shoot", "garden-dev", "a"), reader, facts), Permit)
    assert isinstance(authorize(create, reader, facts), Rejection)
    assert isinstance(authorize(create, by_name, facts), Permit)
    assert isinstance(authorize(create, of_another, facts), Rejection)
    assert is_allowed("system:serviceaccount:garden-dev:robot", "create", "shoot")
    assert not is_allowed("system:serviceaccount:garden-prod:robot", "create", "shoot")


def test_a_group_has_a_role_of_the_landscape_and_the_highest_counts() -> None:
    robot, rita = "system:serviceaccount:ci:robot", Requester("rita", groups=frozenset({"readers"}))
    roles = landscape_roles({"group:system:serviceaccounts:ci": "viewer", robot: "operator", "group:readers": "viewer"})
    get, create = Action("get", "managedseed", "garden", "a"), Action("create", "managedseed", "garden", "a")

    def are_allowed(requester: Requester) -> tuple[bool, bool]:
        facts = AuthorizationFacts(roles)
        return isinstance(authorize(get, requester, facts), Permit), isinstance(
            authorize(create, requester, facts), Permit
        )

    assert are_allowed(Requester("system:serviceaccount:ci:another")) == (True, False)
    assert are_allowed(Requester(robot)) == (True, True)
    assert are_allowed(rita) == (True, False)
    assert are_allowed(Requester("system:serviceaccount:prod:another")) == (False, False)
    assert are_allowed(Requester("group:readers")) == (False, False)
    assert role_of(rita, AuthorizationFacts(roles)) == "viewer"


def test_a_gardenlet_reads_the_secrets_that_its_seed_leads_to_and_changes_no_more_than_their_finalizers() -> None:
    assert isinstance(decided("seed:aws", "get", "secret", is_reachable=True), Permit)
    assert isinstance(decided("seed:aws", "get", "secret"), Rejection)
    assert isinstance(decided("seed:aws", "patch", "secret", is_reachable=True), Permit)  # and `change_problem` decides
    assert isinstance(decided("seed:aws", "patch", "secret"), Rejection)
    for verb in (*(each for each in WRITE if each != "patch"), "list", "watch", "bind", "retry", "adopt"):
        assert isinstance(decided("seed:aws", verb, "secret", is_reachable=True), Rejection), verb


def test_a_gardenlet_lists_the_shoots_of_its_seed_alone() -> None:
    gardenlet, facts = Requester("seed:aws"), AuthorizationFacts()
    assert isinstance(authorize(Action("list", "shoot", None, seed="aws"), gardenlet, facts), Permit)
    assert isinstance(authorize(Action("list", "shoot", None, seed="gcp"), gardenlet, facts), Rejection)
    assert isinstance(authorize(Action("list", "shoot", None), gardenlet, facts), Rejection)


def test_a_gardenlet_never_reads_credentials_that_let_somebody_in() -> None:
    issued = {"kind": "Secret", "metadata": {"name": "x", "labels": {"gardenbus.io/purpose": "credentials"}}}
    token = {"kind": "Secret", "metadata": {"name": "bootstrap-token-4f2a91"}}
    label = {"resources.gardener.cloud/purpose": "token-requestor"}
    requested = {"kind": "Secret", "metadata": {"name": "my-program", "labels": label}, "data": {"token": "e30="}}
    for secret in (issued, token, requested):
        decision = decided("seed:aws", "get", "secret", "garden", stored=secret, is_reachable=True)
        assert isinstance(decision, Rejection)


@pytest.mark.parametrize(("seeds", "is_read"), [("aws", True), ("gcp, aws", True), ("gcp", False), ("", False)])
def test_a_secret_that_names_seeds_is_read_by_their_gardenlets_alone(seeds: str, *, is_read: bool) -> None:
    secret = {"kind": "Secret", "metadata": {"name": "backup", "annotations": {"gardenbus.io/seeds": seeds}}}
    decision = decided("seed:aws", "get", "secret", "garden", stored=secret, is_reachable=True)
    assert isinstance(decision, Permit) == is_read


def test_an_agent_reads_its_cluster_and_its_works() -> None:
    assert is_allowed("member:paris", "get", "membercluster", "", "paris")
    assert is_allowed("member:paris", "list", "work", "fleet-member-paris")
    assert not is_allowed("member:paris", "get", "membercluster", "", "rome")
    assert not is_allowed("member:paris", "list", "work", "fleet-member-rome")
    assert not is_allowed("member:paris", "list", "work", None)
    assert not is_allowed("member:paris", "update", "work", "fleet-member-paris")


def test_a_scheduler_binds_the_shoots_of_its_name_alone() -> None:
    mine = a_shoot(spec={"schedulerName": "mine"})
    for verb in ("bind", "retry"):
        assert isinstance(decided("scheduler:mine", verb, "shoot", stored=mine), Permit)
        assert isinstance(decided("scheduler:other", verb, "shoot", stored=mine), Rejection)
        assert isinstance(decided("scheduler:mine", verb, "shoot", stored=a_shoot()), Rejection)
        assert isinstance(decided("scheduler:mine", verb, "shoot"), Rejection)
    assert is_allowed("scheduler:mine", "list", "shoot", None)
    assert is_allowed("scheduler:mine", "waiting", "", "", "mine")
    assert not is_allowed("scheduler:mine", "waiting", "", "", "other")
    assert not is_allowed("scheduler:mine", "waiting", "", "", "")
    assert not is_allowed("scheduler:mine", "get", "secret")
    assert not is_allowed("scheduler:mine", "get", "configmap")


def test_a_scheduler_reads_the_configmaps_of_regions_alone() -> None:
    regions, others = a_region_configmap(), landscape_roles({"ann": "operator"})
    assert isinstance(decided("scheduler:mine", "get", "configmap", "garden", stored=regions), Permit)
    assert isinstance(decided("scheduler:mine", "get", "configmap", "garden", stored=others), Rejection)
    assert isinstance(decided("scheduler:mine", "get", "configmap", "garden"), Rejection)
    assert not is_allowed("scheduler:mine", "list", "configmap", "garden")
    listed = Action("list", "configmap", "garden", labels=frozenset({REGION_CONFIG_LABEL}))
    mine, facts = Requester("scheduler:mine"), AuthorizationFacts()
    assert isinstance(authorize(listed, mine, facts), Permit)
    assert isinstance(authorize(listed._replace(namespace=None), mine, facts), Rejection)


@pytest.mark.parametrize("key", [LANDSCAPE_ROLES, REVOCATIONS], ids=str)
def test_a_gardenlet_does_not_read_who_may_do_what_by_naming_it_in_its_seed(key: ObjectKey) -> None:
    read = decided("seed:aws", "get", key.kind, key.namespace, key.name, is_reachable=True)
    assert isinstance(read, Rejection)
    assert isinstance(decided("seed:aws", "get", key.kind, key.namespace, "others", is_reachable=True), Permit)


@pytest.mark.parametrize(("kind", "namespace"), [("shoot", "garden-dev"), ("secret", "garden-dev"), ("project", "")])
def test_a_rejection_says_nothing_of_a_project_to_whom_it_is_not_shown(kind: str, namespace: str) -> None:
    with_project = text_of(decided("nobody", "get", kind, namespace, "dev", project=DEV))
    assert with_project == text_of(decided("nobody", "get", kind, namespace, "dev", project=None))
    assert "project dev" not in with_project
    assert "project dev" in text_of(decided("vera", "delete", "shoot"))


def test_a_scheduler_writes_nothing() -> None:
    assert not is_allowed("scheduler:mine", "update", "shoot")


def test_a_bootstrapper_asks_for_a_certificate_and_nothing_else() -> None:
    for verb in ("csr.create", "csr.get", "whoami", "can-i"):
        assert is_allowed("bootstrap:4f2a91", verb, "", "", "")
    for verb in ("kinds", "census", "csr.approve", "csr.deny", "token.create"):
        assert not is_allowed("bootstrap:4f2a91", verb, "", "", "")
    assert not is_allowed("bootstrap:4f2a91", "get", "secret")


@pytest.mark.parametrize("user", ["bootstrap:4f2a91", "seed:aws", "member:rome"])
def test_agents_and_tokens_read_requests_of_their_own(user: str) -> None:
    sent = {"spec": {"username": user}}
    of_its_certificate = {"metadata": {"annotations": {USER: user}}, "spec": {"username": "bootstrap:000000"}}
    of_others = {"metadata": {"annotations": {USER: "seed:other"}}, "spec": {"username": "seed:other"}}
    for verb in ("get", "list", "watch"):
        action = Action(verb, "certificatesigningrequest", "", "one")
        for stored, allowed in ((sent, True), (of_its_certificate, True), (of_others, False), (None, False)):
            found = authorize(action, Requester(user), AuthorizationFacts(stored=stored))
            assert isinstance(found, Permit) is allowed
        everything = authorize(action._replace(name=""), Requester(user), AuthorizationFacts(stored=None))
        assert not isinstance(everything, Permit)
    for verb in ("apply", "patch", "delete", "update-status"):
        action = Action(verb, "certificatesigningrequest", "", "one")
        assert not isinstance(authorize(action, Requester(user), AuthorizationFacts(stored=sent)), Permit)


def test_the_services_account_does_everything_but_a_service_no_more_than_its_row() -> None:
    for user in (ANONYMOUS, "operator", "identity"):
        assert decided(user, "delete", "secret", "garden", is_insider=True) == UNLIMITED
    for kind in ("shoot", "managedseed", "controllerrevision"):
        assert decided("managedseedset", "apply", kind, "garden", is_insider=True) == UNLIMITED
    assert decided("managedseedset", "patch", "seed", is_insider=True) == UNLIMITED
    assert decided("managedseedset", "bind", "shoot", "garden", is_insider=True) == UNLIMITED
    assert decided("autoscaler", "scale", "managedseedset", "garden", is_insider=True) == UNLIMITED
    assert isinstance(decided("managedseedset", "create", "secret", "garden", is_insider=True), Rejection)
    assert isinstance(decided("autoscaler", "delete", "shoot", "garden", is_insider=True), Rejection)
    assert isinstance(decided("dashboard", "update", "secret", "garden", is_insider=True), Rejection)


def test_a_person_called_as_a_service_is_a_person_outside_the_services_account() -> None:
    for user in ("operator", "identity", "managedseedset", ANONYMOUS):
        assert isinstance(decided(user, "delete", "shoot", "garden-prod"), Rejection), user


def test_who_speaks_for_somebody_else_has_no_more_rights_than_that_one() -> None:
    assert isinstance(decided("vera", "delete", "shoot", is_insider=True), Rejection)
    assert isinstance(decided("vera", "get", "shoot", is_insider=True), Permit)


@pytest.mark.parametrize(
    ("user", "verb", "kind", "namespace", "what", "needed"),
    [
        (
            "vera", "delete", "shoot", "garden-dev", 'delete shoots in namespace "garden-dev"',
            "that takes the role member or admin in project dev, or the role operator of the landscape",
        ),
        (
            "adam", "list", "shoot", None, "list shoots in all namespaces",
            "name the namespace of one of your projects with -n NAMESPACE, or have a role of the landscape",
        ),
        ("adam", "create", "seed", "", "create seeds", "that takes the role operator of the landscape"),
        (
            "adam", "get", "shoot", "garden-prod", 'get shoots in namespace "garden-prod"',
            "that takes the role viewer or operator of the landscape",
        ),
        (
            "seed:aws", "get", "secret", "garden-dev", 'get secrets in namespace "garden-dev"',
            "nothing on seed aws leads to it",
        ),
        (
            "vera", "census", "", "", "request census",
            "that takes the role viewer or operator of the landscape",
        ),
    ],
)  # fmt: skip
def test_a_rejection_says_what_would_be_needed(
    user: str, verb: str, kind: str, namespace: str | None, what: str, needed: str
) -> None:
    assert text_of(decided(user, verb, kind, namespace)) == f'user "{user}" cannot {what}: {needed}'
