# SPDX-License-Identifier: Apache-2.0
"""Makes the shared strategies importable from every test."""

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parent))
