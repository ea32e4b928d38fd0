// SPDX-License-Identifier: Apache-2.0
/// \file
/// Formats name the kinds and bindings of users; here each learns what the operation of that name says.
#include "lacis/Transforms/Passes.h"

#include "mlir/IR/AttrTypeSubElements.h"

namespace lacis {
#define GEN_PASS_DEF_LACISRESOLVEKINDS
#include "lacis/Transforms/Passes.h.inc"
} // namespace lacis

using namespace mlir;
using namespace lacis;

namespace {

struct ResolveKinds : lacis::impl::LacisResolveKindsBase<ResolveKinds> {
  void runOnOperation() override {
    Location location = getOperation().getLoc();
    bool ok = true;
    AttrTypeReplacer replacer;
    replacer.addReplacement([&](FormatAttr format) -> std::optional<Attribute> {
      Attribute found = resolve(format, location);
      ok &= static_cast<bool>(found);
      return found ? found : format;
    });
    replacer.addReplacement([&](LevelAttr level) -> std::optional<Attribute> {
      LevelAttr found = resolve(level, location);
      ok &= static_cast<bool>(found);
      return found ? found : level;
    });
    getOperation().walk([&](Operation *op) {
      location = op->getLoc();
      if (ok)
        replacer.replaceElementsIn(op, /*replaceAttrs=*/true, /*replaceLocs=*/false, /*replaceTypes=*/true);
    });
    if (!ok)
      signalPassFailure();
  }

  /// The level whose kind has its facts; null after an error.
  LevelAttr resolve(LevelAttr level, Location location) {
    FlatSymbolRefAttr name = level.getExtent().getDefinition();
    if (!name)
      return level;
    auto kind = getOperation().lookupSymbol<KindOp>(name.getAttr());
    if (!kind) {
      emitError(location) << "no operation 'lacis.kind " << name << "' defines the level kind '" << name << "'";
      return {};
    }
    Attribute known = level.getExtent().withFacts(kind.getFacts());
    return LevelAttr::get(level.getContext(), level.getDigits(), cast<ExtentInterface>(known),
                          cast<CoordinateInterface>(known));
  }

  /// The binding that has its facts, or has no code where no operation defines it; null after an error.
  Attribute resolve(BindingInterface binding, Location location) {
    FlatSymbolRefAttr name = binding.getDefinition();
    auto definition = name ? getOperation().lookupSymbol<BindingOp>(name.getAttr()) : BindingOp();
    if (!definition)
      return binding;
    if (size_t axes = binding.getOperands().size(); definition.getNumAxes() != axes) {
      emitError(location) << "binding '" << name << "' computes " << definition.getNumAxes() << " axes; the format has it of "
                          << axes;
      return {};
    }
    return binding.withFacts(definition.getFacts());
  }

  FormatAttr resolve(FormatAttr format, Location location) {
    SmallVector<Attribute> bindings;
    for (Attribute binding : format.getBindings()) {
      bindings.push_back(resolve(cast<BindingInterface>(binding), location));
      if (!bindings.back())
        return {};
    }
    SmallVector<LevelAttr> levels;
    for (LevelAttr level : format.getLevels()) {
      levels.push_back(resolve(level, location));
      if (!levels.back())
        return {};
    }
    if (ArrayRef(levels) == format.getLevels() && ArrayRef(bindings) == format.getBindings())
      return format;
    auto refuse = [&] { return emitError(location); };
    if (failed(FormatAttr::verify(refuse, format.getAxes(), bindings, levels, format.getMultiset(),
                                  format.getLayout())))
      return {};
    return FormatAttr::get(format.getContext(), format.getAxes(), bindings, levels, format.getMultiset(),
                           format.getLayout());
  }
};

} // namespace
