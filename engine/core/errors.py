"""Everything that can go wrong on purpose.

    EngineError
    ├── BadInput          the caller's fault: a file, a position, a setting (command line: exit code 2)
    │   └── ModelError    a model that can't be had, read or used as asked
    └── OutOfMemory       the device has too little memory for what was asked (exit code 1)

Every message is one sentence that names the thing and the way out; it is shown to users as it stands.
"""


class EngineError(Exception):
    """Base of all errors raised on purpose."""


class BadInput(EngineError):
    """The caller asked for something that can't be done as asked."""


class ModelError(BadInput):
    """A model is unknown, incomplete, unsafe or does not fit."""


class OutOfMemory(EngineError):
    """The device ran out of memory at work."""
