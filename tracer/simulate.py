"""The old name of `pslite_ext.forecast.simulate`."""

import warnings

from pslite_ext.forecast.simulate import *  # noqa: F403
from pslite_ext.forecast.simulate import SimulatedJob as Run  # noqa: F401
from pslite_ext.forecast.simulate import __all__ as __all__

warnings.warn(
    "tracer.simulate is now pslite_ext.forecast.simulate", DeprecationWarning, stacklevel=2
)
