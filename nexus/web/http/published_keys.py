"""Keys that an identity provider publishes. A key that it withdraws stops working within five minutes."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping

import jwt

from nexus import logging

log = logging.get_logger(__name__)

#: A key is trusted for this long after the set that holds it was fetched.
LIFE_SECONDS = 300.0
#: After this long the set is fetched again. Until it ends, a provider that is down for a moment does no harm.
FRESH_SECONDS = 120.0
#: The pause between two fetches, failed ones too. Tokens that name unknown keys can't make Nexus ask more often.
PAUSE_SECONDS = 10.0
FETCH_SECONDS = 5.0


class KeysUnavailable(Exception):
    """There is no set of keys to look into, so nobody can say whether a token is good."""


class PublishedKeys:
    """The keys at a JWKS address, for every thread of a process.

    Not PyJWKClient's caches: one keeps a withdrawn key for ever, the other none while the provider is down.
    """

    def __init__(
        self, url: str, setting: str, rsa_bits: int, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._client = jwt.PyJWKClient(url, cache_jwk_set=False, timeout=FETCH_SECONDS)
        #: What an operator should look at if there are no keys.
        self._setting = setting
        self._rsa_bits = rsa_bits
        self.clock = clock
        self._keys: Mapping[str | None, jwt.PyJWK] = {}
        self._fetched_at = self._tried_at = float("-inf")
        self._turn = threading.Lock()

    @property
    def seconds_left(self) -> float:
        """For how long the present keys may still be trusted."""
        return self._fetched_at + LIFE_SECONDS - self.clock()

    def find(self, kid: str | None) -> jwt.PyJWK:
        """Return the key of this id. Raises PyJWKClientError if it is not published, or KeysUnavailable."""
        key = self._trusted().get(kid)
        if key is None or self.clock() - self._fetched_at >= FRESH_SECONDS:
            self._fetch(wait=key is None)
            key = self._trusted().get(kid)
        if key is not None:
            return key
        if self.seconds_left <= 0:
            raise KeysUnavailable
        raise jwt.PyJWKClientError("There is no such key")

    def _trusted(self) -> Mapping[str | None, jwt.PyJWK]:
        return self._keys if self.seconds_left > 0 else {}

    def _fetch(self, wait: bool) -> None:
        """Fetch the set, unless that was tried a moment ago. Callers who have a key don't wait for another's fetch."""
        if not self._turn.acquire(blocking=wait):
            return
        try:
            began = self.clock()
            if began - self._tried_at >= PAUSE_SECONDS:
                self._tried_at = began
                self._keys, self._fetched_at = self._by_id(), began
        except (jwt.PyJWTError, OSError, ValueError, RecursionError) as error:
            log.warning("keys_unavailable", setting=self._setting, reason=type(error).__name__)
        finally:
            self._turn.release()

    def _by_id(self) -> Mapping[str | None, jwt.PyJWK]:
        """A provider with a single key need not name it: then it is also found without an id."""
        found = [
            key
            for key in self._client.get_jwk_set().keys
            if key.public_key_use in {"sig", None} and self._is_long(key)
        ]
        named: dict[str | None, jwt.PyJWK] = {key.key_id: key for key in found if key.key_id}
        return {**named, None: found[0]} if len(found) == 1 else named

    def _is_long(self, key: jwt.PyJWK) -> bool:
        """Keys on curves that Nexus takes are as strong as RSA keys of 3072 bits."""
        bits = key.key.key_size if key.key_type == "RSA" else None
        if bits is None or bits >= self._rsa_bits:
            return True
        log.warning("key_too_short", setting=self._setting, bits=bits, at_least="NEXUS_RSA_BITS")
        return False
