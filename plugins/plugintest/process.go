package plugintest

import (
	"fmt"
	"os"
	"testing"

	"github.com/droverhq/drover/plugins"
	"github.com/droverhq/drover/plugins/host"
)

// envProvider says which of Main's providers the test binary is to be.
const envProvider = "DROVER_PLUGINTEST_PROVIDER"

// Main is called by TestMain of a package that needs providers as processes: with the environment that Spec sets, the test
// binary serves the provider of that name instead of running tests.
//
//	func TestMain(m *testing.M) {
//		plugintest.Main(map[string]func() *plugins.Server{"null": newNull})
//		goleak.VerifyTestMain(m)
//	}
func Main(providers map[string]func() *plugins.Server) {
	name, ok := os.LookupEnv(envProvider)
	if !ok {
		return
	}
	newServer, ok := providers[name]
	if !ok {
		fmt.Fprintf(os.Stderr, "plugintest: TestMain has no provider %q\n", name)
		os.Exit(1)
	}
	plugins.Serve(newServer())
	os.Exit(0)
}

// Spec gives the spec of the test binary as the provider that Main knows by this name.
func Spec(t testing.TB, name string) host.Spec {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return host.Spec{ID: name, Path: exe, SetEnv: map[string]string{envProvider: name, "GORACE": "atexit_sleep_ms=0"}, Digests: digests}
}

// digests keeps the test binary from being read for every start.
var digests = &host.Digests{}
