# SPDX-License-Identifier: Apache-2.0
# Finds the torch whose headers the operators are compiled with.

# `out`: the folder of the torch that `python` imports. pip's isolated builds hide what is installed from that Python by
# its environment; -I leaves the environment out.
function(lacis_find_torch out python)
  foreach(flags "" "-I")
    execute_process(
      COMMAND ${python} ${flags} -c
        "import importlib.util as u; s = u.find_spec('torch'); print(s.submodule_search_locations[0] if s else '')"
      OUTPUT_VARIABLE root OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
    if(root)
      set(${out} ${root} PARENT_SCOPE)
      return()
    endif()
  endforeach()
  message(FATAL_ERROR
    "Lacis is compiled with the headers of an installed torch, and ${python} has none. Install torch 2.10 or later "
    "first (for a machine without a GPU: pip install torch --index-url https://download.pytorch.org/whl/cpu), "
    "or name the folder of one: pip install . -C cmake.define.LACIS_TORCH_ROOT=<site-packages>/torch")
endfunction()
