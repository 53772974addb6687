"""The people: each is another user, in another thread, and does one thing after another.

What they choose comes from the seed; how far they get in the time depends on the machine.
"""

from __future__ import annotations

import random
import threading

from chaos.client import Client
from chaos.ledger import Ledger
from chaos.site import Site


class Actor:
    def __init__(self, name: str, client: Client, ledger: Ledger, site: Site, chance: random.Random) -> None:
        self.name = name
        self.client = client
        self.user = client.user
        self.ledger = ledger
        self.site = site
        self.chance = chance
        self.over = threading.Event()
        self._names = 0

    def act(self) -> None:
        """Do one thing, whatever the outcome."""
        raise NotImplementedError

    def run(self) -> None:
        while not self.over.is_set():
            self.act()
            self.over.wait(self.chance.uniform(0.0, 0.1))

    def new_name(self) -> str:
        self._names += 1
        return f"{self.name}x{self._names}x"
