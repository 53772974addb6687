"""The secrets of a person's own Nexus, in a file of the data folder."""

from __future__ import annotations

import json
import secrets
import uuid
from pathlib import Path

SECRETS = ("jwt_secret", "internal_secret", "session_secret")


class BadSettings(ValueError):
    """The secrets in the data folder or the file of settings can't be used. The message says what to do."""


def read_or_make(folder: Path) -> dict[str, object]:
    """Read the secrets, creating them first if there are none.

    They are written to another file and linked into place: of two processes, the second reads the first one's.
    """
    path = folder / "secrets.json"
    if not path.exists():
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        draft = folder / f".secrets-{uuid.uuid4().hex}"
        draft.touch(mode=0o600)
        new = {name: secrets.token_urlsafe(48) for name in SECRETS}
        draft.write_text(json.dumps({**new, "local_owner": str(uuid.uuid4())}))
        try:
            path.hardlink_to(draft)
        except FileExistsError:
            pass
        finally:
            draft.unlink()
    try:
        kept = json.loads(path.read_text())
        secrets_kept = {name: str(kept[name]) for name in SECRETS}
        return {**secrets_kept, "local_owner": uuid.UUID(kept["local_owner"])}
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise BadSettings(
            f"{path} does not hold valid secrets. Restore it. Or move it away to get new ones: then people have to "
            "sign in again, and nobody owns what the local owner had."
        ) from error
