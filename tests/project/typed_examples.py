"""What type checkers know, and with them editors: the type of each expression, and a mistake in each marked line.

Read by tests/project/test_editors.py, and never run.
"""

from typing import assert_type

import forel
from forel.sklearn import FTRLClassifier
from forel.training.metrics import Report
from forel.training.result import Evaluation, Training

visits = [{"site": "news", "age": 31, "click": 1}]

# Names of the package, and what its functions return.
model = forel.train(visits, label="click", bits=10, holdout=5)
assert_type(model, forel.Model)
assert_type(forel.load("clicks.forel"), forel.Model)
assert_type(forel.evaluate(model, visits), Evaluation)
assert_type(forel.FTRLClassifier(alpha=0.1), FTRLClassifier)
assert_type(forel.Settings(alpha=0.1), forel.Settings)

# Attributes of results.
assert_type(model.training, Training)
assert_type(model.report, Report)
assert_type(model.report.loss, float)
assert_type(forel.evaluate(model, visits).report.rows, int)

# Options that fewer people use are known by name and type as well.
forel.train(visits, label="click", by="site", fallback=True, encoding="latin-1")

# Mistakes.
forel.train(visits, lable="click")  # error
forel.train(visits, label=3)  # error
forel.train(visits, label="click", bits="10")  # error
forel.train(visits, label="click", holdout_afer=100)  # error
forel.read("clicks.vw", fromat="vw")  # error
forel.Settings(apha=0.1)  # error
print(model.reprot)  # error
forel.trian(visits)  # error
FTRLClassifier(alhpa=0.1)  # error
