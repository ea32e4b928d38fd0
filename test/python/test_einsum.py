# SPDX-License-Identifier: Apache-2.0
"""`lacis.einsum` and `lacis.compile` against torch.einsum."""

import lacis
import pytest
import torch
from lacis.formats import decompose
from strategies import mostly_long, turns

FORMATS = [lacis.Csr, lacis.Csc, lacis.Coo, lacis.Ell, lacis.Bsr(4, 4)]
EXPRESSIONS = ["nk,bk->bn", "ij,j->i", "ij,jk->ik", "ki,kj->ij"]


@pytest.mark.parametrize("target", ["eager", "cpu"])
@pytest.mark.parametrize("expression", EXPRESSIONS)
def test_einsum(target, expression):
    torch.manual_seed(0)
    dense = torch.randn(13, 11).relu()
    terms = expression.split("->")[0].split(",")
    sizes = dict(zip(terms[0], dense.shape))
    other = torch.randn([sizes.get(letter, 7) for letter in terms[1]])
    for format in FORMATS if target == "eager" else turns(FORMATS, EXPRESSIONS.index(expression)):
        result = lacis.einsum(expression, lacis.pack(dense, format), other, target=target)
        torch.testing.assert_close(result, torch.einsum(expression, dense, other), rtol=1e-4, atol=1e-5)


def test_dense_operands_alone_are_torch():
    a, b = torch.randn(3, 4), torch.randn(4, 5)
    assert torch.equal(lacis.einsum("ij,jk->ik", a, b), torch.einsum("ij,jk->ik", a, b))


def test_only_kept_entries_meet_nan():
    w = lacis.pack(torch.tensor([[1.0, 0.0, 0.0], [1.0, 1.0, 0.0], [0.0, 0.0, 0.0]]), lacis.Csr)
    y = lacis.einsum("nk,bk->bn", w, torch.tensor([[1.0, float("nan"), 1.0]]))
    assert y[0, 0] == 1 and y[0, 1].isnan() and y[0, 2] == 0


def test_compile_answers_a_kernel():
    dense = torch.randn(13, 11)
    w, x = lacis.pack(dense, lacis.Csr), torch.randn(7, 11)
    kernel = lacis.compile("nk,bk->bn", w, x)
    torch.testing.assert_close(kernel(w, x), x @ dense.T)
    assert len(kernel.key) == 64 and kernel.target == "cpu"
    assert {"lacis", "loops", "buffers", "target", "llvm", "asm"} <= set(kernel.stages)
    assert "linalg.generic" in kernel.asm["lacis"]
    more = torch.randn(9, 11)
    torch.testing.assert_close(kernel(w, more), more @ dense.T)
    with pytest.raises(lacis.ScheduleError, match="differ"):
        kernel(lacis.pack(dense, lacis.Csc), x)


def test_compile_many_shares_kernels():
    w, v = (lacis.pack(torch.randn(13, 11), lacis.Csr) for _ in range(2))
    x = torch.randn(7, 11)
    first, second = lacis.compile_many([("nk,bk->bn", w, x), ("nk,bk->bn", v, x)])
    assert first.key == second.key
    requests = [("nk,bk->bn", w, x)]
    (other,) = lacis.compile_many(requests, deterministic=False)
    assert "lacis.nondeterministic" in other.asm["lacis"] and other.key != first.key
    with pytest.raises(TypeError, match="compile_many: no keyword 'tiles'; lacis.compile has deterministic, epilogue"):
        lacis.compile_many(requests, tiles=True)


def test_another_device_than_the_target_is_refused():
    with pytest.raises(lacis.ScheduleError, match="is on cpu, the target is 'cuda:sm_90a'"):
        lacis.einsum("ij,j->i", lacis.pack(torch.ones(2, 2), lacis.Csr), torch.ones(2), target="cuda:sm_90a")
    with pytest.raises(lacis.ScheduleError, match="is on cpu, the target is 'cuda'; move it.*lacis.compile and"):
        lacis.compile("ij,j->i", lacis.pack(torch.ones(2, 2), lacis.Csr), torch.ones(2), target="cuda")


def test_duplicates_have_no_places_of_their_own():
    twice = lacis.pack(torch.sparse_coo_tensor(torch.tensor([[0, 0], [1, 1]]), torch.ones(2), (2, 2)), lacis.Coo)
    with pytest.raises(lacis.DataError, match="the operand has duplicates"):
        lacis.einsum("ij,k->ijk", twice, torch.ones(2))
    x = torch.ones(2, 2, requires_grad=True)
    with pytest.raises(lacis.DataError, match="the operand has duplicates"):
        lacis.einsum("ij,ij->i", twice, x)


@pytest.mark.parametrize("target", ["eager", "cpu"])
def test_a_dense_output_around_the_entries(target):
    w, v = torch.randn(5, 7).relu(), torch.randn(3)
    bias = torch.randn(3)
    after = lacis.Epilogue(bias=bias, bias_axis="k", activation="relu")
    for format in turns((lacis.Csr, lacis.Ell, decompose(a=lacis.Ell(width=1), b=lacis.Coo)), 0):
        result = lacis.einsum("ij,k->kij", lacis.pack(w, format), v, epilogue=after, target=target)
        torch.testing.assert_close(result, torch.relu(torch.einsum("ij,k->kij", w, v) + bias[:, None, None]))


SCATTERED = ["ij,ij->i", "ij,bij->bj", "ij,bij->b", "ij,ij->", "ij,ij->ij", "ij,k->ijk"]


@pytest.mark.parametrize("expression", mostly_long(SCATTERED))
def test_gradients_with_all_letters_of_the_packed_operand(expression):
    """The gradient of such a dense operand is dense: zeros, and the entries."""
    generator = torch.Generator().manual_seed(8)
    sizes = {"i": 3, "j": 5, "b": 3, "k": 3}
    w = torch.randn(3, 5, generator=generator, dtype=torch.float64).relu()
    term = expression.split("->")[0].split(",")[1]
    x = torch.randn([sizes[letter] for letter in term], generator=generator, dtype=torch.float64).requires_grad_()
    formats = (lacis.Csr(), lacis.Bsr(2, 2), decompose(a=lacis.Ell(width=1), b=lacis.Coo()))
    for format in turns(formats, SCATTERED.index(expression) // 2):
        packed = lacis.pack(w, format)

        def function(x):
            result = lacis.einsum(expression, packed, x)
            return result.to_dense() if isinstance(result, lacis.PackedTensor) else result

        torch.testing.assert_close(function(x), torch.einsum(expression, w, x))
        assert torch.autograd.gradcheck(function, (x,)) and torch.autograd.gradgradcheck(function, (x,))


@pytest.mark.parametrize("expression", ["ij,bj->bi", "ij,jk->ik", "ij,jk,kl->il", "ij,bj->b", "ij,jk->k", "ij,k->ik"])
@pytest.mark.parametrize("bad", [torch.nan, torch.inf, 1.0])
def test_what_is_not_stored_multiplies_nothing(expression, bad):
    """The result and its gradients are those of a loop over the entries."""
    generator = torch.Generator().manual_seed(2)
    w = torch.randn(6, 8, generator=generator) * (torch.rand(6, 8, generator=generator) < 0.4)
    inputs, output = expression.split("->")
    sizes = {"i": 6, "j": 8, "b": 3, "k": 5, "l": 3}
    for format in (lacis.Csr, lacis.Bsr(2, 4), decompose(a=lacis.Ell(width=1), b=lacis.Coo)):
        packed = lacis.pack(w, format)
        dense = [torch.randn([sizes[n] for n in term], generator=generator) for term in inputs.split(",")[1:]]
        dense[0].view(-1)[0] = dense[0].view(-1)[-1] = bad
        tensors = [tensor.requires_grad_() for tensor in dense]
        result = lacis.einsum(expression, packed, *tensors, target="eager")
        arriving = torch.randn(result.shape, generator=generator)
        arriving.view(-1)[1] = bad
        found = [result, *torch.autograd.grad(result, tensors, arriving)]
        by_entry = [entry_by_entry(expression, packed.to_dense(), packed.pattern, tensors)]
        by_entry += torch.autograd.grad(by_entry[0], tensors, arriving)
        for got, expected in zip(found, by_entry):
            torch.testing.assert_close(got, expected, equal_nan=True)


def entry_by_entry(expression, w, pattern, dense):
    """The sum of the products at each entry, one after the other."""
    inputs, output = expression.split("->")
    sizes = {letter: size for term, t in zip(inputs.split(","), [w, *dense]) for letter, size in zip(term, t.shape)}
    total = torch.zeros([sizes[letter] for letter in output])
    for i, j in pattern.to_mask().nonzero().tolist():
        at = {"i": i, "j": j}
        terms = inputs.split(",")[1:]
        picked = [t[tuple(at.get(n, slice(None)) for n in term)] for term, t in zip(terms, dense)]
        left = ["".join(n for n in term if n not in at) for term in terms]
        kept = "".join(n for n in output if n not in at)
        product = torch.einsum(f"{','.join(left)}->{kept}", *picked) * w[i, j]
        at_output = torch.zeros(total.shape, dtype=torch.bool)
        at_output[tuple(at.get(n, slice(None)) for n in output)] = True
        total = total.masked_scatter(at_output, total[at_output] + product.reshape(-1))
    return total


def test_an_eager_layer_multiplies_nothing_with_what_is_not_stored():
    torch.manual_seed(3)
    model = torch.nn.Sequential(torch.nn.Linear(8, 6))
    s = lacis.create_schedule(model, target="eager")
    s["0.weight"].sparsify(lacis.Magnitude(0.6)).set_format(lacis.Csr)
    model = s.build()
    kept = model[0].weight.to_dense() != 0
    x = torch.randn(2, 4, 8)
    x[0, 0, 3] = torch.nan
    x.requires_grad_()
    y = model(x)
    assert torch.equal(y[0, 0].isnan(), kept[:, 3]) and not y[0, 1:].isnan().any() and not y[1].isnan().any()
    arriving = torch.ones_like(y)
    arriving[1, 2, 4] = torch.inf
    y.backward(arriving)
    assert torch.equal(x.grad[1, 2].isfinite(), ~kept[4])
