"""Workers: threads of this process, or Celery tasks."""
