"""Expectations of what each principal may: written by hand from what the parties are for, not from the code."""

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from gardenbus.common.api.identity.principals import Principal


class Expected(NamedTuple):
    """What the server is to do with a subject; the verb in its own words."""

    is_granted: bool
    verb: str
    subject: str


def by_hand(principal: Principal) -> Iterator[Expected]:
    """The row of a principal, one expectation a subject."""
    is_granted, verb = True, "publish"
    for word in BY_HAND[principal].split():
        match word:
            case "may":
                is_granted = True
            case "not":
                is_granted = False
            case "publish:":
                verb = "publish"
            case "subscribe:":
                verb = "subscription"
            case subject:
                yield Expected(is_granted, verb, subject)


BY_HAND: Mapping[Principal, str] = {
    Principal("service", "relay"): """
        may publish: garden.changed.shoot.dev.a garden.binding.aws.dev.a garden.queue.scheduling.x.dev.a
            $JS.API.STREAM.CREATE.BINDINGS $JS.API.STREAM.PURGE.BINDINGS
        may not publish: garden.as.root.api.apply garden.report.aws.shoot.dev.a $JS.API.STREAM.DELETE.OBJECTS
            $JS.API.STREAM.PURGE.REJECTED
        may not subscribe: garden.api.> garden.as.*.api.> $SYS.>
    """,
    Principal("service", "apiserver"): """
        may publish: garden.rejected.apply.ann $JS.API.STREAM.PURGE.BINDINGS garden.hint.scheduling.mine
        may subscribe: garden.api.> garden.as.*.api.> garden.out.*.api.>
        may not publish: garden.changed.shoot.dev.a garden.binding.aws.dev.a garden.apply
            $JS.API.STREAM.CREATE.OBJECTS $JS.API.STREAM.DELETE.OBJECTS
        may not subscribe: garden.apply garden.changed.>
    """,
    Principal("service", "scheduler"): """
        may publish: garden.later.scheduling.mine.dev.a garden.plugin.carbon
            $JS.API.CONSUMER.MSG.NEXT.QUEUES.waking-mine
        may subscribe: garden.scheduler.x.y garden.hint.scheduling.mine
        may not publish: garden.hint.scheduling.mine garden.plugin.carbon.x
            garden.queue.managedseedset.garden.a garden.as.root.apply garden.changed.shoot.dev.a
            garden.api.bind $JS.API.STREAM.PURGE.QUEUES
        may not subscribe: garden.api.>
    """,
    Principal("service", "dashboard"): """
        may publish: garden.api.list.shoot garden.api.unknown garden.api.lost garden.api.recovery
            $JS.API.CONSUMER.CREATE.OBJECTS.f.garden.changed.shoot.>
        may not publish: $JS.API.CONSUMER.CREATE.OBJECTS.f
            $JS.API.CONSUMER.CREATE.OBJECTS.f.garden.changed.secret.> garden.apply garden.api.apply
            garden.changed.shoot.dev.a $JS.API.STREAM.PURGE.OBJECTS $JS.API.STREAM.MSG.GET.OBJECTS
    """,
    Principal("operator", "operator"): """
        may publish: garden.apply garden.as.ann.api.whoami garden.out.ann.apply garden.plugin.carbon
            $JS.API.STREAM.PURGE.REJECTED
        may subscribe: garden.changed.>
        may not publish: garden.changed.shoot.dev.a garden.binding.aws.dev.a garden.lease.aws
            garden.report.aws.shoot.dev.a garden.queue.garbage.dev.a $SYS.REQ.SERVER.PING $SYS.REQ.USER.AUTH
    """,
    Principal("gardenlet", "aws-cork"): """
        may publish: garden.lease.aws-cork garden.report.aws-cork.shoot.dev.a
            garden.as.seed:aws-cork.api.csr.create
            IN.API.CONSUMER.CREATE.BINDINGS.aws-cork.garden.binding.aws-cork.>
            $JS.ACK.BINDINGS.aws-cork.1.1.1.1.0 IN.API.DIRECT.GET.LEASES.garden.lease.aws-cork
        may subscribe: _INBOX.seed:aws-cork.x
        may not publish: garden.lease.aws-dublin garden.report.aws-dublin.shoot.dev.a
            garden.as.seed:aws-dublin.api.csr.create
            IN.API.CONSUMER.CREATE.BINDINGS.aws-cork.garden.binding.aws-dublin.>
            IN.API.CONSUMER.CREATE.BINDINGS.x
            IN.API.CONSUMER.CREATE.BINDINGS.aws-dublin.garden.binding.aws-dublin.>
            $JS.ACK.BINDINGS.aws-dublin.1.1.1.1.0 IN.API.CONSUMER.DELETE.BINDINGS.aws-dublin
            IN.API.CONSUMER.MSG.NEXT.BINDINGS.aws-dublin
            IN.API.DIRECT.GET.BINDINGS.garden.binding.aws-cork.dev.a IN.API.DIRECT.GET.LEASES.garden.lease.aws-dublin
            IN.API.DIRECT.GET.BINDINGS.garden.view.aws-cork.seed.aws-cork IN.API.STREAM.INFO.BINDINGS
            IN.API.STREAM.MSG.GET.BINDINGS $JS.API.STREAM.INFO.BINDINGS garden.as.seed:aws-cork.apply
            garden.as.seed:aws-cork.api.apply garden.apply _INBOX.seed:aws-dublin.x
        may not subscribe: _INBOX.> _INBOX.seed:aws-dublin.x garden.binding.aws-cork.> garden.> >
    """,
    Principal("member-agent", "paris"): """
        may publish: garden.report.member:paris.work.fleet-member-paris.a garden.as.member:paris.api.csr.create
            IN.API.CONSUMER.CREATE.OBJECTS.member-paris.garden.changed.work.fleet-member-paris.>
        may not publish: garden.report.member:rome.work.fleet-member-rome.a garden.report.paris.shoot.dev.a
            garden.lease.paris
            IN.API.CONSUMER.CREATE.OBJECTS.member-paris.garden.changed.work.fleet-member-rome.>
            IN.API.CONSUMER.CREATE.OBJECTS.member-paris.garden.changed.secret.> garden.as.member:paris.api.apply
        may not subscribe: >
    """,
    Principal("user", "ann"): """
        may publish: garden.as.ann.apply garden.as.ann.delete garden.as.ann.api.list.secret
        may subscribe: _INBOX.ann.x
        may not publish: garden.as.bob.apply garden.as.root.api.apply garden.apply garden.api.list.secret
            garden.out.ann.apply garden.out.bob.apply
            garden.lease.aws $JS.API.INFO IN.API.CONSUMER.CREATE.OBJECTS.ann.garden.changed.shoot.>
            IN.API.STREAM.INFO.OBJECTS garden.as.ann.scheduler.x garden.scheduler.mine.explain garden.seed.aws.x
            garden.plugin.carbon
            _INBOX.bob.x
        may not subscribe: garden.changed.> garden.as.ann.> _INBOX.bob.x
    """,
    Principal("scheduler", "mine"): """
        may publish: IN.API.CONSUMER.MSG.NEXT.QUEUES.scheduling-mine garden.as.scheduler:mine.api.bind
        may subscribe: garden.scheduler.mine.x
        may not publish: garden.later.scheduling.mine.dev.a garden.queue.scheduling.mine.dev.a
            garden.as.scheduler:mine.api.apply IN.API.CONSUMER.MSG.NEXT.QUEUES.scheduling-other
            IN.API.CONSUMER.CREATE.QUEUES.scheduling-mine garden.as.scheduler:other.api.bind
            garden.as.scheduler:mine.api.delete.shoot.dev.a
        may not subscribe: garden.scheduler.x.y
    """,
    Principal("extension", "aws-cork"): """
        may publish: _INBOX.seed:aws-cork.x
        may subscribe: garden.extension.aws-cork.etcd
        may not publish: garden.lease.aws-cork garden.as.extension:aws-cork.api.whoami
            garden.as.seed:aws-cork.api.whoami _INBOX.seed:aws-dublin.x
        may not subscribe: garden.extension.aws-dublin.etcd _INBOX.seed:aws-cork.x
    """,
    Principal("plugin", "carbon"): """
        may publish: _R_.x
        may subscribe: garden.plugin.carbon _INBOX.plugin:carbon.x
        may not publish: garden.plugin.carbon garden.plugin.other garden.as.plugin:carbon.api.whoami
            garden.as.plugin:carbon.api.get.seed.a garden.apply garden.lease.aws-cork garden.scheduler.mine.explain
            IN.API.STREAM.INFO.OBJECTS IN.API.CONSUMER.CREATE.OBJECTS.carbon.garden.changed.seed.> _INBOX.relay.x
        may not subscribe: garden.plugin.other garden.plugin.* garden.plugin.carbon.x garden.changed.seed.>
            garden.scheduler.x.y $SRV.PING $SRV.INFO.carbon _R_.> _INBOX.seed:aws-cork.x
    """,
    Principal("bootstrap", "4f2a91"): """
        may publish: garden.as.bootstrap:4f2a91.api.csr.create
        may not publish: garden.as.bootstrap:4f2a91.api.csr.approve garden.as.bootstrap:4f2a91.api.list.secret
            garden.as.bootstrap:4f2a91.api.whoami garden.as.bootstrap:000000.api.csr.create
            garden.lease.aws-cork garden.as.bootstrap:4f2a91.api.token.create garden.as.bootstrap:4f2a91.apply
        may not subscribe: garden.>
    """,
}
