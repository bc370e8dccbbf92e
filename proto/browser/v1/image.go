// Package browserv1 is the protocol: every message and method, generated from the .proto files beside it. The messages are
// the domain types of all of Drover.
package browserv1

import _ "embed"

// Image is the descriptor image of this package as `buf build` gives it: a FileDescriptorSet with the comments that the
// generated code leaves out.
//
//go:embed image.binpb
var Image []byte
