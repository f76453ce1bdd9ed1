"""Progressive log-loss on a stream of raw customers, in the shape of the telco churn table, with river's interface.

Input: 7,043 dicts of three numbers in their own units (months, and two charges, the larger one up to 8,500), a flag and
six categories, from integer arithmetic, so that every machine has the same rows. A quarter of the customers leave.
Output: the mean log-loss of each model, which predicts a row before it learns from it.
"""

import argparse
import math

from river import compose, linear_model, preprocessing

from forel.river import LinearClassifier

ROWS = 7_043
CONTRACTS, INTERNET = ("Month-to-month", "One year", "Two year"), ("Fiber optic", "DSL", "No")
PAYMENTS = ("Electronic check", "Mailed check", "Bank transfer", "Credit card")
YES = ("Yes", "No")


def customers(count=ROWS, state=11):
    """Yield rows and whether the customer leaves."""

    def draw(below):
        nonlocal state
        state = (state * 6364136223846793005 + 1442695040888963407) % 2**64
        return (state >> 33) % below

    for _ in range(count):
        contract = CONTRACTS[(0, 0, 0, 1, 2)[draw(5)]]
        months = draw(72) + 1 if contract != CONTRACTS[0] else draw(draw(72) + 1) + 1
        internet = INTERNET[draw(3)]
        monthly = {"Fiber optic": 7000, "DSL": 4500, "No": 1800}[internet] + draw(4000)  # cents
        row = {
            "tenure": months,
            "MonthlyCharges": monthly / 100,
            "TotalCharges": monthly * months / 100,
            "SeniorCitizen": int(draw(6) == 0),
            "Contract": contract,
            "InternetService": internet,
            "PaymentMethod": PAYMENTS[draw(4)],
            "PaperlessBilling": YES[draw(2)],
            "Partner": YES[draw(2)],
            "gender": ("Male", "Female")[draw(2)],
        }
        score = {"Month-to-month": 420, "One year": 130, "Two year": 30}[contract] - 4 * months
        score += {"Fiber optic": 130, "DSL": 0, "No": -90}[internet] + 60 * (row["PaymentMethod"] == PAYMENTS[0])
        score += 70 * row["SeniorCitizen"] + 30 * (row["PaperlessBilling"] == "Yes")
        yield row, draw(1000) < min(max(score, 15), 900)


def encoded():
    """Return river's features: categories one by one, and numbers."""
    return (compose.SelectType(str) | preprocessing.OneHotEncoder()) + compose.SelectType((int, float))


def models():
    """Return models by name."""
    return {
        "river, LogisticRegression": encoded() | linear_model.LogisticRegression(),
        "river, StandardScaler and LogisticRegression": (
            encoded() | preprocessing.StandardScaler() | linear_model.LogisticRegression()
        ),
        "forel, alpha=0.1": LinearClassifier(alpha=0.1, bits=16),
        "forel, alpha=0.1, scale-free": LinearClassifier(alpha=0.1, rate="scale_free", bits=16),
        "forel": LinearClassifier(bits=16),
    }


def progressive_loss(model, count):
    """Return the mean log-loss, with probabilities from 1e-15 as in river's metric."""
    total = 0.0
    for row, leaves in customers(count):
        p = min(max(model.predict_proba_one(row).get(True, 0.5), 1e-15), 1 - 1e-15)
        total -= math.log(p if leaves else 1 - p)
        model.learn_one(row, leaves)
    return total / count


def main():
    """Print a line for each model."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=ROWS)
    options = parser.parse_args()
    share = sum(leaves for _, leaves in customers(options.rows)) / options.rows
    entropy = -share * math.log(share) - (1 - share) * math.log(1 - share)
    print(f"{options.rows:,} rows, {share:.1%} positive; entropy {entropy:.3f}")
    for name, model in models().items():
        print(f"{progressive_loss(model, options.rows):7.3f}  {name}")


if __name__ == "__main__":
    main()
