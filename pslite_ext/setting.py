"""What a setting is: its name, what it may hold, and how that is read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from pslite_ext.errors import InvalidArgumentError


class SettingError(InvalidArgumentError):
    """A setting holds what it must not; one line says which, what, and what may be."""


@dataclass(frozen=True)
class Setting:
    name: str
    default: int | str | None  # None: must be set
    meaning: str
    least: int = 0
    most: int = 0
    unit: str = ""
    shared: bool = False  # all nodes must agree: docs/settings.md says how they come to
    core: bool = True  # the native core takes it
    secret: bool = False

    @property
    def is_number(self) -> bool:
        return self.most != 0

    @property
    def allowed(self) -> str:
        if self.is_number:
            return f"{self.least} to {self.most}" + (f" {self.unit}" if self.unit else "")
        return self.unit or "text"

    @property
    def field(self) -> str:
        """Its name in the core's struct."""
        return self.name.removeprefix("DMLC_").removeprefix("MERCURY_").lower()

    def read(self, environ: Mapping[str, str]) -> int | str:
        text = environ.get(self.name, "").strip()
        if not text:
            if self.default is None:
                raise SettingError(f"{self.name} is not set: give {self.allowed}")
            return self.default
        if not self.is_number:
            if any("\udc80" <= character <= "\udcff" for character in text):
                raise SettingError(f"{self.name} is not UTF-8 text")
            return text
        try:
            number = int(text)
        except ValueError:
            number = self.least - 1
        if not self.least <= number <= self.most:
            raise SettingError(f"{self.name} is '{text}'; allowed: {self.allowed}")
        return number
