package main

import (
	"os/exec"
	"strings"
	"testing"
)

// Guards that `make build` tells the program its commit, which a bug report names.
func TestBuildNamesItsCommit(t *testing.T) {
	out, err := exec.CommandContext(t.Context(), "make", "-C", "../..", "--dry-run", "build", "COMMIT=0123456789abcdef").CombinedOutput()
	if err != nil || !strings.Contains(string(out), "-X main.revision=0123456789abcdef") {
		t.Errorf("make build: %v\n%s", err, out)
	}
	was := revision
	t.Cleanup(func() { revision = was })
	if revision = "0123456789abcdef"; commit() != revision {
		t.Errorf("the commit is %q", commit())
	}
}
