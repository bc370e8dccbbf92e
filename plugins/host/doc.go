// Package host finds provider binaries, starts them, talks to them and looks after them.
//
// Find looks for binaries by name. Launch starts one and gives an Instance: one life of one process, which a broker takes
// for a Provider. A Supervisor keeps an instance of a provider when there is need for one: it asks a binary once what it
// can do and remembers the answer, starts it at the first Acquire, stops it when it has been idle, and waits longer and
// longer between starts that fail.
//
// What a provider process gets: an environment of listed names alone, a stdin that is a lifeline (it closes when the host is
// gone, however it went), its own process group, a socket in a 0700 folder, and a connection with mutual TLS or, without
// it, a check of the peer's user. What the host gets of it: log lines, and a bound on every wait. When the process ends, for
// whatever reason, the calls in flight fail within milliseconds, its process group is killed and its sockets are removed.
//
// Run folders carry the owner's process id and start time; Sweep removes what brokers left that were killed, and touches no
// process that does not bear their mark. All this leans on Linux: /proc, pidfds, PR_SET_PDEATHSIG and SO_PEERCRED.
package host
