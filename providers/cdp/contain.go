package cdp

import (
	browserv1 "github.com/droverhq/drover/proto/browser/v1"
	"github.com/droverhq/drover/proto/fault"
)

// bypassNothing takes away the exceptions that Chromium makes from a proxy for loopback and link-local addresses.
const bypassNothing = "<-loopback>"

// nowhere is a proxy that there is not: the discard port.
const nowhere = "127.0.0.1:9"

// contained are the arguments of a browser that reaches nothing but by a proxy. WebRTC would send datagrams around it, and
// names are resolved by the proxy alone.
func contained(proxy string) []string {
	return []string{
		"--proxy-server=http://" + proxy, "--proxy-bypass-list=" + bypassNothing,
		"--force-webrtc-ip-handling-policy=disable_non_proxied_udp", "--webrtc-ip-handling-policy=disable_non_proxied_udp", "--dns-prefetch-disable",
	}
}

// containable refuses what cannot be kept inside a guard: a browser that was there before, and the context that sessions
// share. Who only prefers to attach gets a browser of its own.
func containable(egress string, want *demand, warnings *[]*browserv1.Warning) error {
	if egress == "" {
		return nil
	}
	switch {
	case want.attach == browserv1.Attach_ATTACH_REQUIRE:
		return fault.New(fault.PermissionDenied, "a guard holds for the session, and a running browser cannot be kept inside it").Reason("policy_denied").Field("attach")
	case want.isolation == browserv1.Isolation_ISOLATION_SHARED && !want.persist:
		return fault.New(fault.PermissionDenied, "a guard holds for the session, and what sessions share cannot be kept inside it").Reason("policy_denied").Field("isolation")
	case want.attach == browserv1.Attach_ATTACH_PREFER:
		want.attach = browserv1.Attach_ATTACH_NEVER
		*warnings = append(*warnings, &browserv1.Warning{Code: "not_attached", Message: "a guard holds for the session, so that a browser was started for it"})
	}
	return nil
}
