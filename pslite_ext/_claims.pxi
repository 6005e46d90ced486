# What all workers must have alike; included by _core.pyx.

def claim_model(subject, keys):
    if outside() is not None:
        return  # it agrees to what the others have
    cdef mercury_ticket* ticket = NULL
    cdef bytes lines = "".join(f"{key}\t{name}\n" for key, name in keys).encode()
    ok(mercury_claim_model(subject, lines, &ticket))
    wait_and_free(ticket)


def claim_steps(subject, str told):
    if outside() is not None:
        return
    cdef mercury_ticket* ticket = NULL
    ok(mercury_claim_steps(subject, told.encode(), &ticket))
    wait_and_free(ticket)
