# SPDX-License-Identifier: Apache-2.0
"""A BERT by configuration, 6 layers of 256, trains as its masked dense twin does: three formats, 50 steps."""

import copy

import lacis
import pytest
import torch
from transformers import BertConfig, BertForMaskedLM


def make(dtype):
    torch.manual_seed(0)
    config = BertConfig(
        vocab_size=120, hidden_size=256, num_hidden_layers=6, num_attention_heads=4, intermediate_size=512,
        max_position_embeddings=32, hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0,
    )  # fmt: skip
    return BertForMaskedLM(config).to(dtype)


def schedule(model, target):
    s = lacis.create_schedule(model, target=target)
    s.match(r".*attention\.(self\.\w+|output\.dense)\.weight").sparsify(lacis.Magnitude(0.8)).set_format(lacis.Csc)
    s.match(r".*intermediate\.dense\.weight").block(16, 1).sparsify(lacis.BlockMagnitude(0.8)).set_format(lacis.Bsr)
    hybrid = s.match(r".*layer\.\d\.output\.dense\.weight").sparsify(lacis.Magnitude(0.9))
    hybrid.decompose(ell=lacis.Ell(width=32), rest=lacis.Coo)
    return s


def mask_twin(twin, s):
    """Zero what the schedule prunes, in the weights and in their gradients."""
    parameters = dict(twin.named_parameters())
    for site in s.sites:
        mask = s[site.name].packed.pattern.to_mask()
        parameters[site.name].data.mul_(mask)
        parameters[site.name].register_hook(lambda grad, mask=mask: grad * mask)


def train(model, steps):
    generator = torch.Generator().manual_seed(1)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, weight_decay=0.01)
    losses = []
    for _ in range(steps):
        tokens = torch.randint(0, 60, (4, 16), generator=generator)
        loss = model(input_ids=tokens, labels=(2 * tokens) % 60).loss
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.detach().double())
    return torch.stack(losses)


def compare(dtype, tolerance, steps, target="cpu"):
    model = make(dtype)
    twin = copy.deepcopy(model)
    s = schedule(model, target)
    s.build()
    mask_twin(twin, s)
    ours, theirs = train(model, steps), train(twin, steps)
    torch.testing.assert_close(ours, theirs, rtol=tolerance, atol=0)
    return theirs


def test_the_first_losses_follow_the_masked_dense_model():
    compare(torch.float64, 1e-6, steps=4, target="eager")


@pytest.mark.long
@pytest.mark.parametrize("dtype, tolerance", [(torch.float64, 1e-6), (torch.float32, 1e-2)])
def test_losses_follow_the_masked_dense_model(dtype, tolerance):
    losses = compare(dtype, tolerance, steps=50)
    assert losses[-1] < 0.7 * losses[0]
