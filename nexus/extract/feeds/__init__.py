"""Reads feeds in a parser process: Atom, RSS, RDF and JSON Feed; also the feeds that pages and OPML files name.

reader       any feed                           discovery  the feeds that pages and OPML files name
syndication  Atom, RSS and RDF                  json_feed  JSON Feed
extras       what feedparser drops              dates      dates in the forms that feeds really have
parts        texts, addresses and numbers, within limits
results      what is read

Other processes import only the results, and the names of the readers from here.
"""

#: How the sandbox calls the readers.
FEED_READER = "nexus.extract.feeds.reader:read_feed"
SITE_READER = "nexus.extract.feeds.discovery:read_site"
OPML_READER = "nexus.extract.feeds.discovery:read_outlines"

#: Where YouTube keeps the feeds of its channels and playlists.
CHANNEL_FEED = "https://www.youtube.com/feeds/videos.xml?channel_id={}"
