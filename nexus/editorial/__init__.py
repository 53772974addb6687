"""Stories: a job turns an address or a text into a draft, which an editor corrects and publishes."""
