"""Rules decide which classes a group takes, and leave evidence."""

from wordnet_splits.rules.context import Context as Context
from wordnet_splits.rules.engine import decide as decide
from wordnet_splits.rules.evidence import sentence as sentence
from wordnet_splits.rules.model import ClassRule as ClassRule
from wordnet_splits.rules.model import Expression as Expression
from wordnet_splits.rules.model import known_keys as known_keys
from wordnet_splits.rules.model import lists_used as lists_used
from wordnet_splits.rules.model import operands as operands
from wordnet_splits.rules.model import rule_text as rule_text
from wordnet_splits.rules.rule_values import Operand as Operand
from wordnet_splits.rules.verdict import Finding as Finding
from wordnet_splits.rules.verdict import Key as Key
from wordnet_splits.rules.verdict import Verdict as Verdict
from wordnet_splits.rules.verdict import Via as Via
