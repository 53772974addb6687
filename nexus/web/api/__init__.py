"""The JSON API: each module has the routes of one subject, and the models that document them."""
