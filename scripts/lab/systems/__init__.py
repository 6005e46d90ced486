"""What is compared: stock MXNet, ours, systems of others; and a job of one of them on a bed."""
