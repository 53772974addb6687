"""The life of one subscription: a feed that brings new items into a library."""

from enum import StrEnum

from nexus.states.machine import Edge, Machine


class SubscriptionStatus(StrEnum):
    ACTIVE = "active"  #: polled, each feed at its own pace
    FAILING = "failing"  #: polled, but the last polls brought nothing
    PAUSED = "paused"  #: not polled, because somebody said so
    GONE = "gone"  #: not polled, because the feed is gone for good


S = SubscriptionStatus
#: A subscription is polled only in these.
POLLED = frozenset({S.ACTIVE, S.FAILING})

# fmt: off
#                    verb       from                                to           skip when already in
TROUBLE = Edge("trouble", {S.ACTIVE},                        S.FAILING,   {S.FAILING})
RECOVER = Edge("recover", {S.FAILING},                       S.ACTIVE,    {S.ACTIVE})
VANISH  = Edge("vanish",  {S.ACTIVE, S.FAILING},             S.GONE,      {S.GONE})
PAUSE   = Edge("pause",   {S.ACTIVE, S.FAILING},             S.PAUSED,    {S.PAUSED})
RESUME  = Edge("resume",  {S.PAUSED, S.FAILING, S.GONE},     S.ACTIVE,    {S.ACTIVE})
# fmt: on

SUBSCRIPTION = Machine(
    "subscription", SubscriptionStatus, S.ACTIVE, (TROUBLE, RECOVER, VANISH, PAUSE, RESUME)
)
