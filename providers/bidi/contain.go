package bidi

import (
	"net"
	"strconv"

	"github.com/droverhq/drover/plugins/containment"
	"github.com/droverhq/drover/proto/fault"
)

// proxyFor is the proxy of a user context that a guard holds for; nil for one without. Firefox takes the HTTP proxy for
// every scheme, and would speak TLS with one that is named for https; Chromium wants both, and goes around a proxy to
// loopback unless it is told.
func (b *browser) proxyFor(egress string) *proxySettings {
	switch {
	case egress == "":
		return nil
	case b.firefox():
		return &proxySettings{Type: "manual", HTTP: egress}
	}
	return &proxySettings{Type: "manual", HTTP: egress, SSL: egress, NoProxy: []string{containment.Bypass}}
}

// prepare writes the preferences of a Firefox into its profile: the admin's own, and above them those by which it reaches
// nothing but by the proxy of a guard. A kept profile that is not contained any more gets back what it had.
func prepare(profile string, kept bool, own map[string]any, egress string) error {
	switch {
	case egress == "" && kept:
		return writePrefs(profile, containment.FirefoxFree(), own)
	case egress == "":
		return writePrefs(profile, own)
	}
	host, digits, err := net.SplitHostPort(egress)
	port, numErr := strconv.Atoi(digits)
	if err != nil || numErr != nil {
		return fault.New(fault.InternalError, "the egress proxy %q is no host:port", egress)
	}
	return writePrefs(profile, own, containment.Firefox(host, port))
}
