// Package containment keeps the browser of a guarded session inside: how it is told to reach everything by the broker's
// egress proxy, loopback included, and which of its ways would lead around it. A provider that lists the feature
// containment_proxy uses it or does the same.
package containment

import (
	"context"

	"github.com/droverhq/drover/plugins"
	browserv1 "github.com/droverhq/drover/proto/browser/v1"
	"github.com/droverhq/drover/proto/fault"
)

// Nowhere is a proxy that there is not: the discard port. A browser that several guarded sessions share is given it, so that
// its own traffic finds no way out; each session's pages have a proxy of their own.
const Nowhere = "127.0.0.1:9"

// Bypass takes away the exceptions that Chromium makes from a proxy for loopback and link-local addresses.
const Bypass = "<-loopback>"

// Chromium are the arguments of a Chromium that reaches nothing but by the proxy at an address, host:port. They stand last,
// where they win. WebRTC would send datagrams around a proxy, and its servers' names would be asked of a resolver; so would
// names that a page has resolved in advance.
func Chromium(proxy string) []string {
	return []string{
		"--proxy-server=http://" + proxy, "--proxy-bypass-list=" + Bypass, "--host-resolver-rules=MAP * ~NOTFOUND , EXCLUDE 127.0.0.1",
		"--force-webrtc-ip-handling-policy=disable_non_proxied_udp", "--webrtc-ip-handling-policy=disable_non_proxied_udp",
		"--dns-prefetch-disable", "--disable-quic",
	}
}

// Firefox are the preferences of a Firefox that reaches nothing but by the proxy at an address. WebRTC is switched off, for
// it resolves names and sends datagrams by itself; WebTransport and HTTP/3 are datagrams too.
func Firefox(host string, port int) map[string]any {
	return map[string]any{
		"network.proxy.type": 1, "network.proxy.http": host, "network.proxy.http_port": port, "network.proxy.ssl": host, "network.proxy.ssl_port": port,
		"network.proxy.no_proxies_on": "", "network.proxy.allow_hijacking_localhost": true, "network.proxy.failover_direct": false,
		"network.proxy.allow_bypass": false, "network.dns.disablePrefetch": true, "network.dns.disablePrefetchFromHTTPS": true,
		"network.http.http3.enable": false, "network.webtransport.enabled": false, "media.peerconnection.enabled": false,
	}
}

// FirefoxFree are the same preferences as Firefox has them by itself, for a kept profile that was contained before.
func FirefoxFree() map[string]any {
	return map[string]any{
		"network.proxy.type": 5, "network.proxy.http": "", "network.proxy.http_port": 0, "network.proxy.ssl": "", "network.proxy.ssl_port": 0,
		"network.proxy.no_proxies_on": "", "network.proxy.allow_hijacking_localhost": false, "network.proxy.failover_direct": true,
		"network.proxy.allow_bypass": true, "network.http.http3.enable": true, "network.webtransport.enabled": true, "media.peerconnection.enabled": true,
	}
}

// Admit gives the address of the proxy that the session of a session.ensure has to use; empty for a session that no guard
// holds. It refuses what cannot be kept inside: a browser that was there before, and the context that sessions share. Who
// only prefers to attach gets a browser of its own, with a warning.
func Admit(ctx context.Context, attach *browserv1.Attach, isolation browserv1.Isolation, persist bool) (string, []*browserv1.Warning, error) {
	proxy := plugins.Egress(ctx)
	if proxy == "" {
		return "", nil, nil
	}
	switch {
	case *attach == browserv1.Attach_ATTACH_REQUIRE:
		return "", nil, fault.New(fault.PermissionDenied, "a guard holds for the session, and a running browser cannot be kept inside it").
			Reason("policy_denied").Field("attach").Hint("leave attach out, or ask for never")
	case isolation == browserv1.Isolation_ISOLATION_SHARED && !persist:
		return "", nil, fault.New(fault.PermissionDenied, "a guard holds for the session, and what sessions share cannot be kept inside it").
			Reason("policy_denied").Field("isolation").Hint("ask for isolation per_client_session")
	case *attach == browserv1.Attach_ATTACH_PREFER:
		*attach = browserv1.Attach_ATTACH_NEVER
		return proxy, []*browserv1.Warning{{
			Code: "not_attached", Message: "a guard holds for the session, so that a browser was started for it",
		}}, nil
	}
	return proxy, nil, nil
}
