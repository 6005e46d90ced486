"""The old name of `pslite_ext.forecast.model`."""

import warnings

from pslite_ext.forecast.model import *  # noqa: F403
from pslite_ext.forecast.model import __all__ as __all__

warnings.warn("tracer.model is now pslite_ext.forecast.model", DeprecationWarning, stacklevel=2)
