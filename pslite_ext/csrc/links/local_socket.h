// The way between two processes of one host: a Unix socket, which takes half of the processor time
// that TCP takes over the loopback. What goes over it never leaves the kernel's memory.
//
// A listener's abstract name is made of the address of the TCP listener beside it. Such names
// belong to a network namespace, as addresses do: who finds the name finds who has the address.
// But anybody on the host may take a name, so both sides prove themselves as they do over TCP.
//
// Thread-safety: plain functions on descriptors. Ownership: a TcpSocket closes its descriptor.
// Invariant: who fails here can go on with TCP.
#pragma once

#include "links/tcp.h"

namespace mercury {

Status ListenLocally(const Address& beside, TcpSocket* listener);
// At once; an error: nobody listens there in this namespace.
Status ConnectLocally(const Address& beside, TcpSocket* socket);
bool IsUnixSocket(int fd);
// Whether the process at the other end belongs to the same user.
bool IsOurUser(int fd);

// One byte, and a descriptor with it, or two; at once.
bool HandOver(int fd, char byte, int descriptor, int second = -1);
// As recv, and the descriptors that came with the bytes.
ssize_t Hear(int fd, char* bytes, size_t most, TcpSocket* handed, TcpSocket* second);

}  // namespace mercury
