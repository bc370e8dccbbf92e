// Package plugins is what the author of a browser provider imports.
//
// A provider is a binary that Drover's host starts and talks to over a private gRPC connection (hashicorp/go-plugin). It
// registers one typed function for each normalized method that it has, and Serve does the rest:
//
//	func main() {
//		s := plugins.NewServer(plugins.Info{ID: "mine", Label: "My browser", Version: "1.0.0", Families: []string{"chromium"}})
//		plugins.Handle(s, open)
//		plugins.Serve(s)
//	}
//
//	func open(ctx context.Context, r *browserv1.OpenRequest) (*browserv1.OpenResponse, error) { … }
//
// What is registered is what provider.describe lists, so a provider cannot claim what it lacks; what is not registered
// answers unsupported_method by itself. provider.describe, provider.status and provider.configure have answers of their
// own, which OnDescribe, Handle and OnConfigure extend or replace.
//
// A function is called from many goroutines at once, one a call. Its context ends at the call's deadline (timeout_ms, or
// the method's default), when the caller gives up, and when the provider shuts down; a function that returns then need not
// care which it was, because the server puts the right code in the answer. It fails with a fault (package proto/fault) that
// has a code, a reason and a next step. A function that panics answers internal_error and the process lives on.
//
// The name of the binary is drover-provider-NAME. Package plugins/plugintest connects a server in-process for tests, and
// plugins/conformance judges it.
package plugins
