"""A training report as one HTML page, without scripts or external resources: plots, metrics and the certificate.

Plots are small SVGs written here rather than matplotlib's, so that they come with a plain installation, take their
colors from the page, light or dark, and keep their text readable on a phone.
"""

from forel.report.comparison import comparison_page, write_comparison
from forel.report.page import page, write_report

__all__ = ["comparison_page", "page", "write_comparison", "write_report"]
