"""`rejected` on a landscape of real processes."""

import json
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import nats
import pytest

from tests.contract.operating.conftest import Operator, a_session_shoot
from tests.support.eventually import HANG_SECONDS, eventually
from tests.support.landscape import address_of, trust_of

Reject = Callable[[str], Awaitable[int]]


@pytest.fixture
def reject(operator: Operator) -> Reject:
    """Sends durably a shoot whose workers are wrong, and answers the number it was rejected by."""

    async def rejected(name: str) -> int:
        client = await nats.connect(  # pyright: ignore[reportUnknownMemberType]
            address_of(operator.directory), tls=trust_of(operator.directory)
        )
        broken = a_session_shoot(name, provider={"type": "local", "workers": [{"name": "pool", "minimum": "many"}]})
        await client.request("garden.apply", json.dumps(broken).encode(), timeout=HANG_SECONDS)
        await client.close()

        async def kept() -> int:
            return next(each["id"] for each in rejections(operator) if each["object"].endswith(f"/{name}"))

        return await eventually(lambda: found(kept))

    async def found(kept: Callable[[], Awaitable[int]]) -> int:
        try:
            return await kept()
        except (StopIteration, RuntimeError) as error:
            raise AssertionError(f"{error!r}") from error

    return rejected


def rejections(operator: Operator) -> list[dict[str, Any]]:
    return operator.call("rejected", "-o", "json").output["items"]


async def test_what_was_rejected_is_listed_with_its_reason_and_field(operator: Operator, reject: Reject) -> None:
    identity = await reject("listed")

    rejection = next(each for each in rejections(operator) if each["id"] == identity)
    assert (rejection["subject"], rejection["object"]) == ("garden.apply", "shoot garden-session/listed")
    assert any(field.startswith("spec.provider.workers") for field in rejection["fields"]), rejection
    listed = operator.call("rejected")
    assert any(line.startswith(f"{identity} ") and "garden.apply" in line for line in listed.stdout.splitlines())
    shown = operator.call("rejected", "show", str(identity)).stdout
    assert "minimum: many" in shown
    assert operator.call("rejected", "show", "999999").code == 1


async def test_the_same_again_is_refused_again_and_not_sent_once_more(operator: Operator, reject: Reject) -> None:
    identity = await reject("again")

    first, second = (operator.call("rejected", "replay", str(identity)) for _ in range(2))

    assert first.code == 1
    assert "rejected again, as " in first.stderr
    assert "rejected again within two minutes; it is not sent once more" in second.stderr
    assert len([each for each in rejections(operator) if each["object"].endswith("/again")]) == 2


async def test_what_was_mended_in_an_editor_is_taken(operator: Operator, reject: Reject, tmp_path: Path) -> None:
    identity = await reject("mended")
    mended = tmp_path / "mended.yaml"
    mended.write_text(json.dumps(a_session_shoot("mended", schedulerName="nobody-runs-this")))

    untouched = operator.call("rejected", "replay", str(identity), "--edit", EDITOR="true")
    replayed = operator.call("rejected", "replay", str(identity), "--edit", EDITOR=f"cp {mended}")

    assert (untouched.code, "nothing was changed" in untouched.stderr) == (2, True)
    assert (replayed.code, replayed.stdout) == (0, f"{identity}: taken (shoot garden-session/mended)\n"), replayed
    assert operator.call("get", "shoot", "mended", "-o", "name").stdout == "shoot.core.gardener.cloud/mended\n"
    operator.remove("mended")
