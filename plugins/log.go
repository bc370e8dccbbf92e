package plugins

import (
	"io"
	"os"

	"github.com/hashicorp/go-hclog"
)

// EnvLogLevel names the environment variable in which the host passes the level of its log: trace, debug, info, warn,
// error or off.
const EnvLogLevel = "DROVER_LOG_LEVEL"

// newLogger writes what the host reads from stderr: one JSON object a line. Run by hand it writes plain lines.
func newLogger(name string, out io.Writer) hclog.Logger {
	level := hclog.LevelFromString(os.Getenv(EnvLogLevel))
	if level == hclog.NoLevel {
		level = hclog.Info
	}
	return hclog.New(&hclog.LoggerOptions{Name: name, Level: level, Output: out, JSONFormat: hosted()})
}
