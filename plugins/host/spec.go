package host

import (
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/hashicorp/go-hclog"
	"google.golang.org/protobuf/types/known/structpb"

	browserv1 "github.com/droverhq/drover/proto/browser/v1"
	"github.com/droverhq/drover/proto/fault"
)

// DefaultStartTimeout is how long a provider may take from its start to its first answer.
const DefaultStartTimeout = 10 * time.Second

// Spec says which provider to run and how. ID and Path are needed; the zero value of the rest works.
type Spec struct {
	// ID is the provider's name in this broker: the label of its block in the config, or the binary's name.
	ID string
	// Path is the binary, absolute.
	Path string
	// Args are its arguments.
	Args []string
	// Env names further variables of the host's environment that are passed on; one that ends in * stands for all that
	// begin so.
	Env []string
	// SetEnv sets variables.
	SetEnv map[string]string
	// NoMTLS leaves out the certificates, for authors without an X.509 library: the socket then lies in a 0700 folder and
	// the peer's user is checked.
	NoMTLS bool
	// Config is the body of its block in the config file.
	Config *structpb.Struct
	// Settings are what the host tells every provider. RunDir and BrokerPid are filled in when they are empty.
	Settings *browserv1.HostSettings
	// Run is the broker's run folder. Without it the process gets a temporary folder of its own.
	Run *Run
	// Logger gets the provider's log; nil for nowhere.
	Logger hclog.Logger
	// StartTimeout is how long it may take from the start to being configured; 0 for DefaultStartTimeout.
	StartTimeout time.Duration
	// Tier gives the tier of a binary by its digest, as describe tells it; nil for candidate, whatever the provider claims.
	Tier func(digest string) browserv1.CertificationTier
	// Digests remembers the digests of binaries; nil to compute them each time.
	Digests *Digests

	stage func(State) // told when the process answers and is being described
}

// complete fills in what is empty.
func (s Spec) complete() Spec {
	if s.Logger == nil {
		s.Logger = hclog.NewNullLogger()
	}
	if s.StartTimeout <= 0 {
		s.StartTimeout = DefaultStartTimeout
	}
	if s.Digests == nil {
		s.Digests = &Digests{}
	}
	if s.Tier == nil {
		s.Tier = func(string) browserv1.CertificationTier {
			return browserv1.CertificationTier_CERTIFICATION_TIER_CANDIDATE
		}
	}
	if s.stage == nil {
		s.stage = func(State) {}
	}
	return s
}

// binary refuses what cannot be run before anything is started, with what a person has to do.
func (s Spec) binary() error {
	if !filepath.IsAbs(s.Path) {
		return fault.New(fault.InternalError, "the path %q of provider %s is not absolute", s.Path, s.ID).Provider(s.ID)
	}
	info, err := os.Stat(s.Path)
	if err != nil {
		return fault.New(fault.SetupRequired, "the binary of provider %s is missing: %s", s.ID, s.Path).
			Reason("provider_missing").Hint("%s", s.missing()[0]).With("manual_steps", s.missing()).Provider(s.ID).Cause(err)
	}
	if !info.Mode().IsRegular() || info.Mode()&fs.FileMode(0o111) == 0 {
		step := "make it executable: chmod +x " + s.Path
		return fault.New(fault.SetupRequired, "the binary of provider %s is not executable: %s", s.ID, s.Path).
			Reason("provider_not_executable").Hint("%s", step).With("manual_steps", []string{step}).Provider(s.ID)
	}
	return nil
}

// missing says what a person does about a binary that is not there.
func (s Spec) missing() []string {
	return []string{
		"put the binary " + Prefix + "NAME into " + PluginDir() + ", beside drover, or on PATH",
		"run drover provider list to see which binaries are found",
	}
}
