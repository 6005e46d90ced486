"""mercury: read, analyse and replay traces; launch and look after jobs."""
