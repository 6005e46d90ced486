"""The lab: systems side by side on links of a given speed, `python -m scripts.lab.runner`.

Rooms, each of which imports only those before it: bed, workloads, systems, benches, report."""
