// SPDX-License-Identifier: Apache-2.0
/// \file
/// A layer's recorded call as a node of torch's autograd: its backward pass runs without Python.
///
/// LibTorch's stable ABI has no autograd, so this library is built for one torch, whose version its name ends with.
#include <ATen/core/dispatch/Dispatcher.h>
#include <dlfcn.h>
#include <map>
#include <mutex>
#include <random>
#include <shared_mutex>
#include <torch/csrc/autograd/custom_function.h>
#include <torch/library.h>

namespace lacis::ops {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

/// What a layer's calls have in common.
struct Layer {
  std::vector<at::Tensor> trained; // the values of each part, then the vectors that are added to the product
  std::vector<at::Tensor> counted; // of each part an empty tensor, whose version grows with each new pattern
  at::Tensor graphs;               // another, whose version grows with the weights that CUDA graphs train
  int64_t numValues = 0;
  int64_t ofInput = 0;                            // the bound call of the input's gradient, 0 where it needs none
  std::vector<std::pair<int64_t, bool>> ofValues; // of each part's; does that call take the input first?
  int64_t tail = 0;                               // how many dimensions of the product are not the input's
  bool hasCopies = false;                         // do the gradients read copies that the forward call filled?
};

class Layers {
public:
  int64_t add(std::shared_ptr<const Layer> layer) {
    std::unique_lock<std::shared_mutex> lock(mutex);
    layers.emplace(++last, std::move(layer));
    return last;
  }

  std::shared_ptr<const Layer> find(int64_t number) {
    std::shared_lock<std::shared_mutex> lock(mutex);
    auto found = layers.find(number);
    TORCH_CHECK(found != layers.end(), "lacis data: layer ", number, " is not bound in this process");
    return found->second;
  }

  std::shared_ptr<const Layer> remove(int64_t number) {
    std::unique_lock<std::shared_mutex> lock(mutex);
    auto node = layers.extract(number);
    return node.empty() ? nullptr : std::move(node.mapped());
  }

private:
  std::shared_mutex mutex;
  std::map<int64_t, std::shared_ptr<const Layer>> layers;
  int64_t last = int64_t(std::random_device{}()) << 24; // a number of another process means nothing here
};

static Layers &layers() {
  static Layers *all = new Layers; // outlives every static of the process
  return *all;
}

template <typename Signature> static auto find(const char *name, const char *overload) {
  return c10::Dispatcher::singleton().findSchemaOrThrow(name, overload).typed<Signature>();
}

static at::Tensor runBound(const at::Tensor &operand, int64_t call) {
  static const auto run = find<at::Tensor(const at::Tensor &, int64_t)>("lacis::einsum", "bound");
  return run.call(operand, call);
}

static at::Tensor runPair(const at::Tensor &first, const at::Tensor &second, int64_t call) {
  static const auto run =
      find<at::Tensor(const at::Tensor &, const at::Tensor &, int64_t)>("lacis::einsum", "bound_pair");
  return run.call(first, second, call);
}

static std::vector<int64_t> patternOf(const Layer &layer) {
  std::vector<int64_t> state;
  for (const at::Tensor &tensor : layer.counted)
    state.push_back(tensor._version());
  return state;
}

/// What must be now as it was in the forward pass, so that copies that this filled are those of the values.
static std::vector<int64_t> copiesOf(const Layer &layer) {
  if (!layer.hasCopies)
    return {};
  std::vector<int64_t> state = {layer.graphs._version()};
  for (int64_t n = 0; n < layer.numValues; ++n) {
    state.push_back(layer.trained[n]._version());
    state.push_back(reinterpret_cast<int64_t>(layer.trained[n].data_ptr()));
  }
  return state;
}

template <typename Function> static Function findIn(const char *library, const char *name) {
  void *loaded = dlopen(library, RTLD_LAZY | RTLD_NOLOAD);
  return reinterpret_cast<Function>(loaded ? dlsym(loaded, name) : nullptr);
}

/// Does the present stream of the device capture a graph? The driver is asked: c10 of torch 2.11 cannot say it.
static bool isCaptured(const at::Device &device) {
  if (!device.is_cuda())
    return false;
  static const auto present =
      findIn<int32_t (*)(int32_t, void **)>("libtorch_cuda.so", "aoti_torch_get_current_cuda_stream");
  static const auto ask = findIn<int (*)(void *, int *)>("libcuda.so.1", "cuStreamIsCapturing");
  void *stream = nullptr;
  int answer = 0;
  return !present || !ask || present(device.index(), &stream) || ask(stream, &answer) || answer;
}

/// What a backward pass must know of its forward pass.
struct Call : torch::CustomClassHolder {
  std::shared_ptr<const Layer> layer;
  at::Tensor owner; // not saved as a tensor is: hooks would put another in its place
  int64_t revision = 0;
  std::vector<int64_t> sizes, pattern, copies;
};

/// `lacis::recorded`. It saves the input, where values need a gradient, and the values, where the input needs one. The
/// graph keeps `owner` alive, an empty tensor whose Python object holds what is bound.
struct LayerCall : torch::autograd::Function<LayerCall> {
  static at::Tensor forward(AutogradContext *ctx, const at::Tensor &input, at::TensorList trained,
                            c10::intrusive_ptr<Call> made, int64_t call);
  static variable_list backward(AutogradContext *ctx, variable_list gradients);
};

at::Tensor LayerCall::forward(AutogradContext *ctx, const at::Tensor &input, at::TensorList trained,
                              c10::intrusive_ptr<Call> made, int64_t call) {
  const Layer *layer = made->layer.get();
  at::Tensor output = runBound(input, call);
  bool ofValues = false;
  for (int64_t n = 0; n < layer->numValues; ++n)
    ofValues |= trained[n].requires_grad();
  variable_list saved = {ofValues ? input : at::Tensor()};
  if (input.requires_grad())
    saved.insert(saved.end(), trained.begin(), trained.begin() + layer->numValues);
  ctx->save_for_backward(std::move(saved));
  made->sizes = input.sizes().vec();
  made->pattern = patternOf(*layer);
  made->copies = copiesOf(*layer);
  ctx->saved_data["call"] = c10::IValue::make_capsule(std::move(made));
  return output;
}

/// A product's gradient with all dimensions but the last `tail` taken as one.
static at::Tensor rowsOf(const at::Tensor &grad, int64_t tail) {
  if (grad.dim() == tail + 1)
    return grad;
  std::vector<int64_t> sizes = {1};
  for (int64_t d = 0; d < grad.dim(); ++d) {
    if (d < grad.dim() - tail)
      sizes[0] *= grad.size(d);
    else
      sizes.push_back(grad.size(d));
  }
  return grad.reshape(sizes);
}

/// The gradients by bound calls, undefined where nobody asks.
static variable_list gradientsOf(const Layer &layer, AutogradContext *ctx, const at::Tensor &input, at::Tensor grad) {
  grad = grad.contiguous(); // once for all that read it
  variable_list found = {ctx->needs_input_grad(0) ? runBound(grad, layer.ofInput) : at::Tensor()};
  at::Tensor rows;
  for (int64_t n = 0; n < int64_t(layer.trained.size()); ++n) {
    if (!ctx->needs_input_grad(n + 1)) {
      found.emplace_back();
    } else if (n < layer.numValues) {
      auto [call, inputFirst] = layer.ofValues[n];
      found.push_back(inputFirst ? runPair(input, grad, call) : runPair(grad, input, call));
    } else {
      if (!rows.defined())
        rows = rowsOf(grad, layer.tail);
      found.push_back(rows.sum(0));
    }
  }
  return found;
}

/// The first `count` gradients by the way that may be differentiated again, and says what is wrong.
static variable_list otherwise(AutogradContext *ctx, const Call &call, const variable_list &saved, const at::Tensor &grad,
                               size_t count) {
  static const auto run = find<std::vector<at::Tensor>(const at::Tensor &, const std::optional<at::Tensor> &,
                                                       at::TensorList, const at::Tensor &, at::IntArrayRef,
                                                       at::IntArrayRef, int64_t)>("lacis::recorded", "otherwise");
  std::vector<int64_t> asked;
  for (size_t n = 0; n < count; ++n)
    if (ctx->needs_input_grad(n))
      asked.push_back(int64_t(n));
  std::optional<at::Tensor> input;
  if (saved[0].defined())
    input = saved[0];
  at::TensorList values(saved.data() + 1, saved.size() - 1);
  std::vector<at::Tensor> made = run.call(call.owner, input, values, grad, call.sizes, asked, call.revision);
  variable_list found(count);
  for (size_t n = 0; n < asked.size(); ++n)
    found[size_t(asked[n])] = made[n];
  return found;
}

variable_list LayerCall::backward(AutogradContext *ctx, variable_list gradients) {
  auto call = c10::static_intrusive_pointer_cast<Call>(ctx->saved_data["call"].toCapsule());
  const Layer *layer = call->layer.get();
  const at::Tensor &grad = gradients[0];
  bool quick = !at::GradMode::is_enabled() && !(layer->hasCopies && isCaptured(grad.device())) &&
               copiesOf(*layer) == call->copies;
  if (patternOf(*layer) != call->pattern) {
    otherwise(ctx, *call, {at::Tensor()}, grad, 0); // refuses another pattern, before torch finds its values written in place
    quick = false;
  }
  variable_list saved = ctx->get_saved_variables();
  for (size_t n = 1; n < saved.size(); ++n)
    quick &= saved[n].data_ptr() == layer->trained[n - 1].data_ptr();
  variable_list found;
  if (quick) {
    try {
      found = gradientsOf(*layer, ctx, saved[0], grad);
    } catch (const std::exception &) {
      quick = false;
    }
  }
  if (!quick)
    found = otherwise(ctx, *call, saved, grad, 1 + layer->trained.size());
  found.resize(found.size() + 2); // of what was made, and a number
  return found;
}

static at::Tensor recorded(const at::Tensor &input, const at::Tensor &owner, int64_t number, int64_t call,
                           int64_t revision) {
  auto made = c10::make_intrusive<Call>();
  made->layer = layers().find(number);
  made->owner = owner;
  made->revision = revision;
  return LayerCall::apply(input, at::TensorList(made->layer->trained), made, call);
}

static int64_t record(at::TensorList trained, at::TensorList counted, const at::Tensor &graphs, int64_t ofInput,
                      at::IntArrayRef ofValues, at::IntArrayRef inputFirst, int64_t tail, bool hasCopies) {
  TORCH_CHECK(ofValues.size() == inputFirst.size() && ofValues.size() <= trained.size() && tail >= 0,
              "lacis data: a recorded layer has two numbers for the values of each part");
  auto layer = std::make_shared<Layer>();
  layer->trained = trained.vec();
  layer->counted = counted.vec();
  layer->graphs = graphs;
  layer->numValues = int64_t(ofValues.size());
  layer->ofInput = ofInput;
  for (size_t n = 0; n < ofValues.size(); ++n)
    layer->ofValues.emplace_back(ofValues[n], inputFirst[n] != 0);
  layer->tail = tail;
  layer->hasCopies = hasCopies;
  return layers().add(std::move(layer));
}

static void forget(int64_t number) { layers().remove(number); }

} // namespace lacis::ops

TORCH_LIBRARY_FRAGMENT(lacis, library) {
  using namespace lacis::ops;
  library.def("record(Tensor[] trained, Tensor[] counted, Tensor graphs, int of_input, int[] of_values, "
              "int[] input_first, int tail, bool has_copies) -> int",
              record);
  library.def("record.forget(int layer) -> ()", forget);
  library.def("recorded(Tensor input, Tensor owner, int layer, int call, int revision) -> Tensor", recorded);
  library.def("recorded.otherwise(Tensor owner, Tensor? input, Tensor[] values, Tensor grad, int[] sizes, int[] asked, "
              "int revision) -> Tensor[]");
}
