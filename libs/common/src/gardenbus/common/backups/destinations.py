"""Destinations by their addresses.

| address                        | where                                                               |
|--------------------------------|---------------------------------------------------------------------|
| `/var/backups`, `file:///path` | a directory                                                         |
| `nats://host:4222/BUCKET`      | an object store of JetStream (`tls://` with TLS; user and password; |
|                                | of a cluster: `nats://h1:4222,h2:4222,h3:4222/BUCKET`)              |
| `s3://BUCKET/folder`           | a bucket of S3; `?endpoint=https://host&region=eu-west-1` for others |
"""

import re
from pathlib import Path
from urllib.parse import parse_qs, unquote, urlsplit

from gardenbus.common.backups.directory import DirectoryDestination
from gardenbus.common.errors import BadRequest
from gardenbus.common.ports.backups import BackupDestination, BackupFolder

_BUCKET = re.compile(r"[A-Za-z0-9_-]+")
_S3_BUCKET = re.compile(r"[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]")
_S3_FOLDER = re.compile(r"(/[A-Za-z0-9_.=-]+)*/?")
_S3_OPTIONS = frozenset({"endpoint", "region"})


def destination_of(address: str, copies: int | None = None) -> BackupDestination:
    """Open a destination. Raises BadRequest for an address that is none. `copies`: see BucketDestination."""
    scheme = address.partition("://")[0] if "://" in address else ""
    if scheme in ("nats", "tls"):
        return _bucket_of(address, scheme, copies)
    if not address or scheme not in ("", "file", "s3"):
        raise BadRequest(
            f"{scheme or address!r} is no destination of backups: write a directory, as /var/backups/gardenbus, "
            "a bucket of S3, as s3://BUCKET/folder, or an object store of JetStream, as nats://host:4222/BUCKET"
        )
    return folder_of(address)


def folder_of(address: str) -> BackupFolder:
    """Open a destination that has folders: a directory or S3. Raises BadRequest for an address that is none."""
    scheme = address.partition("://")[0] if "://" in address else ""
    if scheme == "s3":
        return _s3_of(address)
    if not address or scheme not in ("", "file"):
        raise BadRequest(
            f"{scheme or address!r} is no place with folders: write a directory, as /var/backups/gardenbus, "
            "or a bucket of S3, as s3://BUCKET/folder"
        )
    if scheme:
        parts = urlsplit(address)
        if parts.netloc not in ("", "localhost") or not parts.path:
            raise BadRequest(f"{address!r} names another machine: write file:///path")
        return DirectoryDestination(Path(unquote(parts.path)))
    return DirectoryDestination(Path(address).expanduser().absolute())


def _bucket_of(address: str, scheme: str, copies: int | None) -> BackupDestination:
    from gardenbus.common.adapters.nats.backup_bucket import BucketDestination  # noqa: PLC0415  slow to import

    servers, _, bucket = address.rpartition("/")
    parts = [each.removeprefix(f"{scheme}://").rpartition("@") for each in servers.split(",")]
    login, hosts = "".join(parts[0][:2]), [host for *_, host in parts]
    shown = f"{scheme}://{','.join(hosts)}/{bucket}"
    urls = [f"{scheme}://{login}{host}" for host in hosts]
    try:
        have_hosts = all(urlsplit(url).hostname and urlsplit(url).port != 0 for url in urls)
    except ValueError:
        have_hosts = False
    if not have_hosts or not _BUCKET.fullmatch(bucket):
        raise BadRequest(f"{shown} names no bucket: write nats://host:4222/BUCKET, of letters, digits, '-' and '_'")
    return BucketDestination(urls, bucket, place=shown, copies=copies)


def _s3_of(address: str) -> BackupFolder:
    parts = urlsplit(address)
    options = {name: values[-1] for name, values in parse_qs(parts.query, keep_blank_values=True).items()}
    endpoint = options.get("endpoint", "")
    is_endpoint = not endpoint or (urlsplit(endpoint).scheme in ("http", "https") and urlsplit(endpoint).hostname)
    is_folder = _S3_FOLDER.fullmatch(parts.path) and not {".", ".."} & set(parts.path.split("/"))
    if not (_S3_BUCKET.fullmatch(parts.netloc) and is_folder and is_endpoint and options.keys() <= _S3_OPTIONS):
        raise BadRequest(
            f"s3://{parts.netloc.rpartition('@')[2]}{parts.path} is no bucket with a folder: write "
            "s3://BUCKET/folder, with ?endpoint=https://host and &region=eu-west-1 where they are not in "
            "AWS_ENDPOINT_URL and AWS_REGION; keys are read from AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY"
        )
    try:
        from gardenbus.common.adapters.s3.backup_folder import S3Folder, open_bucket  # noqa: PLC0415  16 MB, and slow
    except ImportError as error:
        raise BadRequest("S3 needs obstore: pip install 'gardenbus[s3]'; or write another place") from error
    store = open_bucket(parts.netloc, endpoint=endpoint, region=options.get("region", ""))
    return S3Folder(store, parts.netloc, parts.path.strip("/"))
