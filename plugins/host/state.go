package host

import (
	"time"

	browserv1 "github.com/droverhq/drover/proto/browser/v1"
)

// State is where a provider is in its life.
type State string

// The states of a provider. One that is stopped starts when it is needed.
const (
	StateStarting    State = "starting"
	StateDescribing  State = "describing"
	StateReady       State = "ready"
	StateDegraded    State = "degraded"
	StateUnavailable State = "unavailable"
	StateDraining    State = "draining"
	StateStopped     State = "stopped"
	StateBackoff     State = "backoff"
)

// Running says whether a process answers calls in this state.
func (s State) Running() bool {
	return s == StateReady || s == StateDegraded || s == StateUnavailable || s == StateDraining
}

// Status is what a supervisor knows of its provider. It is a value: nothing in it changes.
type Status struct {
	// ID is the provider's name in this broker.
	ID string
	// Path is its binary.
	Path string
	// Digest is the binary's SHA-256 in hexadecimal digits, of the last process or the last look at the file; empty where
	// it could not be read.
	Digest string
	// State is where it is in its life.
	State State
	// Since is when it came to that state.
	Since time.Time
	// PID is its process; 0 when none runs.
	PID int
	// Describe is what it last said of itself, in this process or an earlier one; nil before the first time.
	Describe *browserv1.DescribeResponse
	// Last is its last answer to provider.status; nil before the first.
	Last *browserv1.StatusResponse
	// Err is why it cannot run now, where it cannot, as a fault; nil for one that is stopped and starts when it is needed.
	Err error
	// LastExit is why the last process ended that was not asked to, or the last start failed, as a fault; nil before.
	LastExit error
	// ManualSteps are what a person has to do before it can run.
	ManualSteps []string
	// Starts is how many processes have been started.
	Starts int
	// RetryAt is when the next start is tried, in backoff.
	RetryAt time.Time
	// Drained says that it takes no calls until it is restarted.
	Drained bool
}

// Change is a provider's step from one state to another.
type Change struct {
	From, To State
	Status   Status
}
