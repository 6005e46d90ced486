"""Predicts training: by formulas (`model`) and packet by packet (`simulate`). Needs NumPy alone."""
