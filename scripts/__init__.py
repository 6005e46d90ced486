"""What builds, measures and demonstrates mercury-ps; none of it is installed."""
