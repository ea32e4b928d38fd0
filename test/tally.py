# SPDX-License-Identifier: Apache-2.0
"""Cases drawn at random: from which seed, and how many a run found right."""

import collections
import os

# Another number draws other formats, expressions and schedules.
SEED = int(os.environ.get("LACIS_TEST_SEED", "3"))
counts: collections.Counter = collections.Counter()


def line() -> str:
    found = ", ".join(f"{count} {what}" for what, count in sorted(counts.items())) or "none"
    return f"drawn at random with seed {SEED}, and right: {found}"
