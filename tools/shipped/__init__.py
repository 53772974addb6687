"""Whether what a team installs works: the wheel with its pinned requirements, started by the README's commands."""
