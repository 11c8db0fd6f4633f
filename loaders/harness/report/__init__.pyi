from .write_report import report as report
