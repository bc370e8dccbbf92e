// Package conformance judges a provider: it drives it through the protocol on pages that it serves itself, and says of every
// method what holds.
//
// The suite runs against anything that answers methods: a provider's process (Judge starts one), a connection in the same
// process, a broker's caller. A check is either a transcript (transcripts/METHOD/NAME.txtar: the talk, and what must be
// answered, in the protocol's own JSON) or, where a transcript cannot say it, a Go function. Each opens with what it guards.
//
// What comes out is a Report: certified, compatible or experimental for the provider and for each of its methods. A Store
// keeps reports by the SHA-256 of the binary they are about, so a report says nothing of another build.
package conformance
