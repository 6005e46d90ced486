"""Hugging Face's Trainer over mercury: a small GPT-2, made on the spot, learns to count.

torchrun --nproc-per-node 2 examples/torch_trainer.py
"""

# First: a server or scheduler that runs this script gets no further, and needs no PyTorch.
import pslite_ext.torch  # noqa: F401 (it brings the backend)

# isort: split
import argparse
import hashlib
import tempfile

import torch
import torch.distributed as dist
from transformers import GPT2Config, GPT2LMHeadModel, Trainer, TrainingArguments

LENGTH, NUMBERS = 16, 50


class Counting(torch.utils.data.Dataset):
    """Each text counts on from a number of its own."""

    def __len__(self) -> int:
        return 256

    def __getitem__(self, index: int) -> dict[str, torch.Tensor]:
        tokens = (torch.arange(LENGTH) + 7 * index) % NUMBERS
        return {"input_ids": tokens, "labels": tokens}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=40)
    parser.add_argument("--batch-size", type=int, default=8, help="of each worker")
    parser.add_argument("--backend", default="mercury", help="gloo, to compare")
    options = parser.parse_args()

    # accelerate takes the process group that is there. By the name that ddp_backend could give, it
    # would make none but Gloo's on CPUs.
    dist.init_process_group(options.backend)
    torch.manual_seed(1)
    config = GPT2Config(
        vocab_size=NUMBERS, n_positions=LENGTH, n_embd=32, n_layer=2, n_head=2,
        resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0, bos_token_id=0, eos_token_id=0,
    )  # fmt: skip
    model = GPT2LMHeadModel(config)
    with tempfile.TemporaryDirectory() as folder:
        arguments = TrainingArguments(
            output_dir=folder,
            use_cpu=True,
            ddp_find_unused_parameters=False,
            max_steps=options.steps,
            per_device_train_batch_size=options.batch_size,
            learning_rate=3e-3,
            logging_steps=options.steps,
            save_strategy="no",
            report_to="none",
        )
        trained = Trainer(model=model, args=arguments, train_dataset=Counting()).train()
    weights = torch.nn.utils.parameters_to_vector(model.parameters()).detach().numpy()
    print(f"loss {trained.training_loss:.4f}")
    print("weights", hashlib.sha256(weights.tobytes()).hexdigest()[:16], flush=True)


if __name__ == "__main__":
    main()
