// Package bridge is the backend of the Browser Operator Protocol: it lets the browsers of one user connect through an
// extension, over a WebSocket or over SSE and HTTP, on one loopback listener, and carries commands to them and results back.
//
// The listener is a singleton of the user: the process that has the seat holds it, the others join the holder over a private
// unix socket and see the same browsers, and when the holder dies another takes over (plugins/singleton). Commands have ids
// that no process gives twice, so a result finds its caller over a new connection and over a new holder.
package bridge

// DefaultListen is where browsers connect unless the config says otherwise.
const DefaultListen = "127.0.0.1:7334"

// The paths of the listener. A path may be followed by a target.
const (
	socketPath  = "/browser/ws"
	commandPath = "/browser/events"
	resultPath  = "/browser/result"
	pairPath    = "/pair"
)
