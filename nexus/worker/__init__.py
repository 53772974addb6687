"""The worker's door: threads of this process, or Celery tasks."""
