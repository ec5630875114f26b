"""Questions, a target that answers them at once, and how long a tool takes; the scripts of peers import it, too."""

import time

LONGEST = 40
PATTERN = "^[0-9]+ days"
REPEATS = 3


def cases(count):
    """Questions with the expected answer."""
    return [
        {"id": f"s{number:05d}", "question": f"item {number}", "expected": f"{number % 60} days after delivery"}
        for number in range(count)
    ]


def answer_of(question):
    """What the target says: one answer in ten is wrong."""
    number = int(question.split()[1])
    return f"{number % 60} days after delivery" if number % 10 else "I do not know."


def measured(evaluated, small, large):
    """The CPU seconds of the first call, the least of a few small and large ones, and the sum of the mean scores.

    Args:
        evaluated: Evaluates so many cases, and returns the sum of the mean scores.
        small: How many cases a small call has.
        large: How many cases a large call has; 0 for the first call alone.
    """

    def seconds(count):
        start = time.process_time()
        scores = evaluated(count)
        return time.process_time() - start, scores

    first, scores = seconds(small)
    if not large:
        return {"first": first, "scores": scores}
    return {
        "first": first,
        "small": min(seconds(small)[0] for _ in range(REPEATS)),
        "large": min(seconds(large)[0] for _ in range(REPEATS)),
        "scores": scores,
    }
