"""What every request passes through: protocol, envelope, who is asking, metrics."""
