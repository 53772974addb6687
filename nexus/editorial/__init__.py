"""Stories: from an address or a text, by way of a job's steps, to a draft that an editor publishes."""
