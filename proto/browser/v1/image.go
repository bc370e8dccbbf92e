package browserv1

import _ "embed"

// Image is the descriptor image of this package as `buf build` gives it: a FileDescriptorSet with the comments that the
// generated code leaves out.
//
//go:embed image.binpb
var Image []byte
