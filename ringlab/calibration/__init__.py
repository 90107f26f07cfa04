"""Measure this machine, so that runs on it can be predicted; and how well that works."""

from ringlab.calibration.measure import measure
from ringlab.calibration.predict import CASES, Case, Row, predict, predict_table, render

__all__ = ["CASES", "Case", "Row", "measure", "predict", "predict_table", "render"]
