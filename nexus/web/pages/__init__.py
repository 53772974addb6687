"""The HTML pages: each module has the routes of one part of the site."""
