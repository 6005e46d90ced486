"""A small transformer that learns to continue text, letter by letter, with PyTorch on mercury.

The text is Python's own help, which comes with Python.

torchrun --nproc-per-node 2 examples/torch_text.py
"""

# First: a server or scheduler that runs this script gets no further, and needs no PyTorch.
import pslite_ext.torch as mercury

# isort: split
import argparse
import hashlib
import os
from pydoc_data.topics import topics

import torch
from torch import nn

LETTERS = 128  # of ASCII


class Transformer(nn.Module):
    def __init__(self, width: int, layers: int, context: int) -> None:
        super().__init__()
        self.letters = nn.Embedding(LETTERS, width)
        self.places = nn.Embedding(context, width)
        layer = nn.TransformerEncoderLayer(
            width, width // 16, 4 * width, dropout=0.0, batch_first=True, norm_first=True
        )
        self.layers = nn.TransformerEncoder(layer, layers, enable_nested_tensor=False)
        self.norm = nn.LayerNorm(width)
        self.next = nn.Linear(width, LETTERS)

    def forward(self, text: torch.Tensor) -> torch.Tensor:
        places = torch.arange(text.shape[1])
        later = nn.Transformer.generate_square_subsequent_mask(text.shape[1])
        x = self.letters(text) + self.places(places)
        return self.next(self.norm(self.layers(x, mask=later, is_causal=True)))


def help_text() -> torch.Tensor:
    text = "\n".join(topics[name] for name in sorted(topics))
    return torch.frombuffer(bytearray(text.encode("ascii", "replace")), dtype=torch.uint8).long()


@torch.no_grad()
def continued(model: nn.Module, start: str, length: int, context: int) -> str:
    text = torch.tensor([list(start.encode())])
    for _ in range(length):
        letter = model(text[:, -context:])[0, -1].softmax(0).multinomial(1)
        text = torch.cat([text, letter[None]], 1)
    return bytes(text[0].tolist()).decode()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=300)
    parser.add_argument("--batch-size", type=int, default=16)
    parser.add_argument("--context", type=int, default=64)
    parser.add_argument("--width", type=int, default=128)
    parser.add_argument("--layers", type=int, default=2)
    parser.add_argument("--clip", type=float, default=1.0, help="to this norm of all gradients")
    options = parser.parse_args()
    rank = int(os.environ["RANK"])

    torch.manual_seed(rank)  # each worker draws other places of the text
    text = help_text()
    model: nn.Module = Transformer(options.width, options.layers, options.context)
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3)
    model, optimizer = mercury.wrap(model, optimizer)
    for step in range(options.steps):
        begins = torch.randint(len(text) - options.context - 1, (options.batch_size, 1))
        some = text[begins + torch.arange(options.context + 1)]
        guesses = model(some[:, :-1])
        loss = nn.functional.cross_entropy(guesses.flatten(0, 1), some[:, 1:].flatten())
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), options.clip)
        optimizer.step()
        optimizer.zero_grad()
        if step % 25 == 0 or step == options.steps - 1:
            print(f"worker {rank}, step {step}: loss {loss:.3f}", flush=True)
    weights = nn.utils.parameters_to_vector(model.parameters()).detach().numpy()
    print("weights", hashlib.sha256(weights.tobytes()).hexdigest()[:16], flush=True)
    if rank == 0:
        model.eval()
        print(continued(model, "The statement ", 200, options.context))


if __name__ == "__main__":
    main()
