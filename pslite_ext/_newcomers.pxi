# Workers that come while the job runs; included by _core.pyx.

from math import inf
from time import monotonic

ADMISSIONS = ("comes", "ready", "takes", "has", "in")


def places():
    return mercury_places()


def outside():
    cdef int entry
    outside_ = mercury_outside(&entry)
    return (rank(), entry) if outside_ else None


def came_late():
    return mercury_came_late() != 0


def next_to_let_in():
    cdef int entry
    place = mercury_next_to_let_in(&entry)
    return (place, entry) if place >= 0 else None


def say_admission(newcomer, admission):
    mercury_say_admission(newcomer[0], newcomer[1], ADMISSIONS.index(admission))


def wait_admission(newcomer, admission, within_s=inf):
    cdef int place, entry, code
    place, entry = newcomer
    cdef int at = ADMISSIONS.index(admission)
    until = monotonic() + within_s
    while monotonic() < until:
        with nogil:
            code = mercury_wait_admission(place, entry, at, SLICE_MS)
        if code != MERCURY_NOT_YET:
            ok(code)
            return True
        check_signals()
    return False


def do_without(newcomer, why):
    cdef bytes said = why.encode()
    mercury_do_without(newcomer[0], said)


def standing():
    return mercury_standing().decode()


def enter(text):
    cdef bytes said = text.encode()
    ok(mercury_enter(said))


def let_in(newcomer):
    place, entry = newcomer
    command(mercury_let_in_head(), f"{place} {entry}".encode())


def release(keys):
    if keys:
        command(mercury_release_head(), " ".join(map(str, keys)).encode())
