"""Feeds: subscriptions, what they bring, and how that becomes items. In `media`, because what they bring are items.

requests      whole requests: fetched first, written, announced
subscribing   who subscribes to what, and how that changes
subscriptions what members see of them
lookup        the feed behind an address, and a look at it before subscribing
reading       fetches and reads a feed, and checks what it says
polling       subscriptions as work: due, polled, and due again
poll_results  writes what came of a poll
share         how many feeds one user may subscribe to
pace          how long until the next poll
arrivals      what is new in a feed, and what has changed
previews      what a subscription has brought, as a viewer sees it
taking        takes an item of a feed into the library
episodes      episodes of podcasts: what makes two of them the same
own_texts     the text that a feed carries, if the page can't be had
outlines      OPML, in and out
"""
