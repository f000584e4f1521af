import logging

log = logging.getLogger(__name__)


def read_or_none(path):
    try:
        with open(path) as file:
            return file.read()
    ▮except OSError as error:▮
        log.warning("can't read %s: %s", path, error)
        return None
