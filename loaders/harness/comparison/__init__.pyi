from .across import Across as Across
from .across import compare_across as compare_across
from .class_nearness import Nearness as Nearness
from .class_nearness import nearness as nearness
from .flattery import ChoiceFlattery as ChoiceFlattery
from .side_by_side import Comparison as Comparison
from .side_by_side import compare as compare
from .similar_features import similar_pairs as similar_pairs
