"""Any store that speaks the S3 protocol. Upload links are bound to a type, a length and a path that is still free."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import timedelta
from functools import cached_property
from tempfile import SpooledTemporaryFile
from typing import Any

import boto3
from botocore.config import Config
from botocore.exceptions import (
    BotoCoreError,
    ClientError,
    CredentialRetrievalError,
    HTTPClientError,
    NoCredentialsError,
    PartialCredentialsError,
)
from botocore.exceptions import ConnectionError as NoConnection

from nexus.storage import (
    CHUNK,
    Clock,
    Link,
    ObjectExists,
    ObjectMissing,
    StorageError,
    Stored,
    Trouble,
    UploadTarget,
    explained,
)
from nexus.storage.digest import Digest, Digester
from nexus.storage.names import disposition

_MISSING = {"404", "NoSuchKey", "NotFound"}
_EXISTS = {"412", "409", "PreconditionFailed", "ConditionalRequestConflict"}

_NO_KEYS = Trouble(
    "There are no keys for the S3 store.",
    "Set NEXUS_S3_ACCESS_KEY and NEXUS_S3_SECRET_KEY, or run Nexus where AWS gives it a role.",
)
_AWAY = Trouble("The S3 store can't be reached.", "Start it, or correct NEXUS_S3_ENDPOINT_URL.")
_UNKNOWN_KEY = Trouble(
    "The S3 store does not know the access key.", "Correct NEXUS_S3_ACCESS_KEY and NEXUS_S3_SECRET_KEY."
)
_FORBIDDEN = Trouble(
    "The S3 store does not let these keys use the bucket.",
    "Allow them to list, read, write and delete in NEXUS_S3_BUCKET, or set other NEXUS_S3_ACCESS_KEY and "
    "NEXUS_S3_SECRET_KEY.",
)
_NO_BUCKET = Trouble("The S3 store has no such bucket.", "Create it, or correct NEXUS_S3_BUCKET.")
_ELSEWHERE = Trouble("The bucket is in another region.", "Correct NEXUS_S3_REGION.")
_TROUBLES = {
    "InvalidAccessKeyId": _UNKNOWN_KEY,
    "SignatureDoesNotMatch": Trouble(
        "The S3 store refuses the secret key.", "Correct NEXUS_S3_SECRET_KEY; it belongs to the access key."
    ),
    "AccessDenied": _FORBIDDEN,
    "403": _FORBIDDEN,
    "NoSuchBucket": _NO_BUCKET,
    "404": _NO_BUCKET,
    "PermanentRedirect": _ELSEWHERE,
    "AuthorizationHeaderMalformed": _ELSEWHERE,
    "RequestTimeTooSkewed": Trouble(
        "The clocks of this machine and the S3 store differ too much.", "Set the clock of this machine."
    ),
}


@dataclass(frozen=True)
class S3:
    bucket: str
    endpoint_url: str | None
    region: str
    access_key: str | None
    secret_key: str | None = field(repr=False)
    clock: Clock
    link_server: None = None

    @cached_property
    def _client(self) -> Any:
        return boto3.client(
            "s3",
            endpoint_url=self.endpoint_url,
            region_name=self.region,
            aws_access_key_id=self.access_key,
            aws_secret_access_key=self.secret_key,
            config=Config(
                signature_version="s3v4",
                connect_timeout=5,
                read_timeout=30,
                retries={"max_attempts": 3, "mode": "standard"},
                request_checksum_calculation="when_required",
                response_checksum_validation="when_required",
                s3={"addressing_style": "path"},
            ),
        )

    def sign_upload(self, path: str, content_type: str, size: int, life: timedelta) -> UploadTarget:
        expires_at = self.clock() + life
        url = self._sign(
            "put_object", life, Key=path, ContentType=content_type, ContentLength=size, IfNoneMatch="*"
        )
        return UploadTarget(url, {"Content-Type": content_type, "If-None-Match": "*"}, expires_at)

    def sign_download(self, path: str, filename: str, content_type: str, life: timedelta) -> Link:
        expires_at = self.clock() + life
        url = self._sign(
            "get_object",
            life,
            Key=path,
            ResponseContentType=content_type,
            ResponseContentDisposition=disposition(filename),
        )
        return Link(url, expires_at)

    def head(self, path: str) -> Stored | None:
        try:
            found = self._call("head_object", Key=path)
        except ObjectMissing:
            return None
        return Stored(path, found["ContentLength"], found["LastModified"])

    def stream(self, path: str) -> Iterator[bytes]:
        body = self._call("get_object", Key=path)["Body"]
        try:
            yield from body.iter_chunks(CHUNK)
        except BotoCoreError as error:
            raise StorageError(type(error).__name__) from error
        finally:
            body.close()

    def digest(self, path: str) -> Digest | None:  # noqa: ARG002
        return None

    def put(self, path: str, chunks: Iterable[bytes], content_type: str) -> Digest:
        digester = Digester()
        with SpooledTemporaryFile(max_size=8 * CHUNK) as whole:
            for chunk in digester.passing(chunks):
                with explained():
                    whole.write(chunk)
            with explained():
                whole.seek(0)
            self._call("put_object", Key=path, Body=whole, ContentType=content_type, IfNoneMatch="*")
        return digester.result()

    def delete(self, path: str) -> None:
        self._call("delete_object", Key=path)

    def objects(self, prefix: str) -> Iterator[Stored]:
        more: dict[str, str] = {}
        while True:
            page = self._call("list_objects_v2", Prefix=prefix, **more)
            for found in page.get("Contents", []):
                yield Stored(found["Key"], found["Size"], found["LastModified"])
            if not page.get("IsTruncated"):
                return
            more = {"ContinuationToken": page["NextContinuationToken"]}

    def partial_files(self) -> Iterator[Stored]:
        return iter(())

    def delete_partial(self, part: Stored) -> None:  # noqa: ARG002
        return

    def trouble(self) -> Trouble | None:
        try:
            self._client.list_objects_v2(Bucket=self.bucket, MaxKeys=1)
        except ClientError as error:
            code = _code(error)
            return _TROUBLES.get(code) or Trouble(
                f"The S3 store refuses: {code}.", "Look into its log, and check the NEXUS_S3_… settings."
            )
        except (NoCredentialsError, PartialCredentialsError, CredentialRetrievalError):
            return _NO_KEYS
        except (HTTPClientError, NoConnection):
            return _AWAY
        except (BotoCoreError, ValueError) as error:  # ValueError: not an address
            return Trouble(
                f"The S3 store can't be asked: {type(error).__name__}.", "Check the NEXUS_S3_… settings."
            )
        return None

    def _sign(self, operation: str, life: timedelta, **parameters: Any) -> str:
        try:
            url: str = self._client.generate_presigned_url(
                operation, Params={"Bucket": self.bucket, **parameters}, ExpiresIn=int(life.total_seconds())
            )
        except (BotoCoreError, ClientError) as error:
            raise StorageError(type(error).__name__) from error
        return url

    def _call(self, operation: str, **parameters: Any) -> Any:
        try:
            return getattr(self._client, operation)(Bucket=self.bucket, **parameters)
        except ClientError as error:
            raise _explained(error) from error
        except BotoCoreError as error:
            raise StorageError(type(error).__name__) from error


def _explained(error: ClientError) -> StorageError:
    code = _code(error)
    if code in _MISSING:
        return ObjectMissing(code)
    return ObjectExists(code) if code in _EXISTS else StorageError(code)


def _code(error: ClientError) -> str:
    return str(error.response.get("Error", {}).get("Code", ""))
