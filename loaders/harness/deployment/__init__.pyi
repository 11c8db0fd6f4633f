from .export import export_detector as export_detector
from .shipped_detector import ImageScore as ImageScore
from .shipped_detector import ShippedDetector as ShippedDetector
from .shipped_detector import load_detector as load_detector
