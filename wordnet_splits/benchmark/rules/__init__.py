"""Rules decide which classes a group takes, and leave evidence."""

from wordnet_splits.benchmark.rules.context import Context as Context
from wordnet_splits.benchmark.rules.context import Key as Key
from wordnet_splits.benchmark.rules.context import Operand as Operand
from wordnet_splits.benchmark.rules.engine import decide as decide
from wordnet_splits.benchmark.rules.registry import Finding as Finding
from wordnet_splits.benchmark.rules.registry import Verdict as Verdict
from wordnet_splits.benchmark.rules.registry import Via as Via
from wordnet_splits.benchmark.rules.registry import sentence as sentence
from wordnet_splits.benchmark.rules.syntax import ClassRule as ClassRule
from wordnet_splits.benchmark.rules.syntax import Expression as Expression
from wordnet_splits.benchmark.rules.syntax import known_keys as known_keys
from wordnet_splits.benchmark.rules.syntax import lists_used as lists_used
from wordnet_splits.benchmark.rules.syntax import operands as operands
from wordnet_splits.benchmark.rules.syntax import rule_text as rule_text
