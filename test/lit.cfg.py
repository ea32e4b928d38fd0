# SPDX-License-Identifier: Apache-2.0
"""Runs the .mlir tests against the tools of one build."""

import os
import shutil
import sys

import lit.formats

config.name = "lacis"
config.test_format = lit.formats.ShTest(execute_external=False)
config.suffixes = [".mlir", ".test"]
config.excludes = ["Inputs", "python", "gpu", "unit"]
config.test_source_root = os.path.dirname(os.path.abspath(__file__))

folders = [config.lacis_tools, config.llvm_tools, config.environment["PATH"]]
config.environment["PATH"] = os.pathsep.join(folders)
config.substitutions.append(("%python", f'"{sys.executable}"'))
config.substitutions.append(("%outside", f'env LD_PRELOAD="{config.outside_core}"'))
config.substitutions.append(("%source", os.path.dirname(config.test_source_root)))

# An assembler for PTX, when there is one: the tool itself, or the one in the package nvidia-cuda-nvcc.
packaged = os.path.join(sys.prefix, "lib", f"python3.{sys.version_info.minor}", "site-packages", "nvidia")
candidates = [os.environ.get("LACIS_PTXAS"), shutil.which("ptxas")]
candidates += [os.path.join(packaged, name, "bin", "ptxas") for name in ("cuda_nvcc", "cu13")]
ptxas = next((path for path in candidates if path and os.access(path, os.X_OK)), None)
if ptxas:
    config.available_features.add("ptxas")
    config.substitutions.append(("%ptxas", ptxas))
