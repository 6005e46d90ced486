"""`mercury profile`: a gluon model's layer times on this machine, for `mercury sim` and the lab.

Needs MXNet, when it runs; any build of 1.9 will do.
"""

from __future__ import annotations

import argparse
import importlib
import importlib.util
import platform
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pslite_ext.command.arguments import count
from pslite_ext.command_line import Parser
from tracer.errors import TraceError
from tracer.output import write_json
from tracer.progress import Progress

if TYPE_CHECKING:
    from pslite_ext.command.layer_times import LayerTimes

FAILED = 2
SHAPES = {"inceptionv3": "3,299,299"}  # of one sample; others have USUAL_SHAPE
USUAL_SHAPE = "3,224,224"


class ProfileError(Exception):
    """The model cannot be profiled; one line says why and what to do."""


def parser() -> argparse.ArgumentParser:
    top = Parser(
        prog="mercury profile",
        description="Measure how long each layer of a gluon model computes here, forward and "
        "backward, and write a job file: for `mercury sim` and the lab's --profile.",
        epilog="exit codes: 0 all well; 2 wrong usage or model; 130 interrupted",
    )
    top.add_argument(
        "model",
        metavar="MODEL",
        help="a name of gluon's model zoo, such as resnet50_v1; or FILE.py:FUNCTION, which returns "
        "a block, or a block and its inputs (an NDArray or a list of them)",
    )
    top.add_argument("--batch", type=count, default=32, help="samples (default 32)")
    top.add_argument(
        "--shape",
        metavar="N,N,...",
        help="of one sample (default 3,224,224; inceptionv3 3,299,299); not if FUNCTION has inputs",
    )
    top.add_argument("--repeats", type=count, default=5, help="medians of so many (default 5)")
    top.add_argument("--gpu", type=int, metavar="N", help="on this GPU (default: the processor)")
    top.add_argument("--out", metavar="FILE", help="default: MODEL.json here")
    top.add_argument("--quiet", action="store_true", help="no progress on stderr")
    return top


def main(argv: Sequence[str]) -> int:
    options = parser().parse_args(list(argv))
    try:
        try:
            mx = importlib.import_module("mxnet")
        except ImportError as error:
            raise ProfileError(f"needs MXNet, and it does not load: {error}") from error
        name, net, inputs = _model(options, mx)
        from pslite_ext.command.layer_times import measure

        with Progress("profiling", 1, options.quiet) as progress:
            try:
                times = measure(net, inputs, options.repeats, progress.reached_of)
            except Exception as error:  # somebody else's code
                raise ProfileError(
                    f"{options.model} with an input of {_shapes(inputs)}: {_last_line(error)}"
                ) from error
        if not times.tensors:
            raise ProfileError(f"{options.model} has no trainable parameter")
        out = options.out or f"{name}.json"
        write_json(out, _job(name, inputs, options, times, mx.__version__))
    except (ProfileError, TraceError) as error:
        print(f"mercury profile: {error}", file=sys.stderr)
        return FAILED
    size = sum(tensor.bytes for tensor in times.tensors)
    print(
        f"{out}: {len(times.tensors)} tensors, {size / 1e6:.1f} MB; forward "
        f"{times.forward_s * 1e3:.1f} ms, backward {times.backward_s * 1e3:.1f} ms; "
        f"layers alone add up to {times.alone_share:.0%} of that"
    )
    if times.unused:
        print(f"not used by the forward pass, left out: {', '.join(times.unused[:5])}")
    return 0


def _model(options: argparse.Namespace, mx: Any) -> tuple[str, Any, list[Any]]:
    """Its name, the block with values in its parameters, and its inputs."""
    if options.gpu is not None and not 0 <= options.gpu < mx.context.num_gpus():
        raise ProfileError(f"--gpu {options.gpu}: MXNet sees {mx.context.num_gpus()} GPUs here")
    device = mx.cpu() if options.gpu is None else mx.gpu(options.gpu)
    inputs: list[Any] = []
    file, colon, function = options.model.partition(":")
    if colon:
        name = function
        made = _call(Path(file), function)
        net, given = made if isinstance(made, tuple) and len(made) == 2 else (made, None)
        if given is not None:
            inputs = list(given) if isinstance(given, (list, tuple)) else [given]
        if not isinstance(net, mx.gluon.Block):
            raise ProfileError(f"{options.model} returns no gluon block, but {type(net).__name__}")
    else:
        name = options.model
        try:
            net = mx.gluon.model_zoo.vision.get_model(name)
        except ValueError as error:  # its text lists the models
            says = " ".join(str(error).split())
            raise ProfileError(f"'{name}' is not FILE.py:FUNCTION: {says}") from error
    for array in inputs:
        if not isinstance(array, mx.nd.NDArray):
            raise ProfileError(
                f"{options.model} returns an input that is no NDArray, but "
                f"{type(array).__name__}: make it one with mx.nd.array"
            )
    if inputs and options.shape:
        raise ProfileError(f"--shape: {options.model} brings its own inputs")
    if not inputs:
        shape = (options.batch, *_shape(options.shape or SHAPES.get(name, USUAL_SHAPE)))
        inputs = [mx.nd.random.uniform(-1, 1, shape, ctx=device)]
    else:
        inputs = [array.as_in_context(device) for array in inputs]
    net.initialize(ctx=device)
    net.collect_params().reset_ctx(device)
    return name, net, inputs


def _call(file: Path, function: str) -> Any:
    spec = importlib.util.spec_from_file_location(file.stem, file)
    if not file.is_file() or spec is None or spec.loader is None:
        raise ProfileError(f"{file}: is not a Python file")
    module = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except Exception as error:  # somebody else's code
        raise ProfileError(f"{file}: {_last_line(error)}") from error
    if not callable(make := getattr(module, function, None)):
        raise ProfileError(f"{file}: has no function '{function}'")
    try:
        return make()
    except Exception as error:
        raise ProfileError(f"{file}:{function}: {_last_line(error)}") from error


def _shape(text: str) -> tuple[int, ...]:
    try:
        shape = tuple(int(n) for n in text.split(","))
    except ValueError:
        shape = (0,)
    if min(shape) < 1:
        raise ProfileError(f"--shape {text}: is not of the form 3,224,224")
    return shape


def _shapes(inputs: Sequence[Any]) -> str:
    return " and ".join("x".join(map(str, array.shape)) for array in inputs)


def _last_line(error: Exception) -> str:
    lines = [line for line in str(error).splitlines() if line.strip(" -")]
    return f"{type(error).__name__}: {' '.join(lines[-1].split()) if lines else ''}"


def _job(
    name: str, inputs: Sequence[Any], options: argparse.Namespace, times: LayerTimes, version: str
) -> dict[str, Any]:
    """What `mercury sim` and the lab read, and where it comes from."""
    iteration_s = times.forward_s + times.backward_s
    device = platform.machine() if options.gpu is None else f"GPU {options.gpu}"
    return {
        "model": name,
        "inputs": _shapes(inputs),
        "iteration_s": iteration_s,
        "forward_share": times.forward_s / iteration_s,
        "derivation": f"measured by mercury profile on {device}, MXNet {version}, medians of "
        f"{options.repeats}; layers alone add up to {times.alone_share:.3f} of the whole",
        "layers": [
            {
                "name": tensor.name,
                "bytes": tensor.bytes,
                "bp_s": tensor.backward_s,
                "fp_s": tensor.forward_s,
            }
            for tensor in times.tensors
        ],
    }
