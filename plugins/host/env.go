package host

import (
	"maps"
	"os"
	"slices"
	"strings"
)

// passed are the variables of the host's environment that every provider gets; a name that ends in * stands for all that
// begin so.
var passed = []string{
	"PATH", "HOME", "USER", "LOGNAME", "LANG", "LANGUAGE", "LC_*", "TZ", "TMPDIR",
	"DISPLAY", "WAYLAND_DISPLAY", "XAUTHORITY", "XDG_*", "DBUS_SESSION_BUS_ADDRESS",
	"SSL_CERT_*", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "no_proxy",
	"OTEL_*",
}

// environ gives the environment of a provider: what is on the list, then the names that its spec lets through, then the
// values that its spec sets, then the host's own. A later one of the same name wins.
func environ(host []string, spec Spec, own []string) []string {
	values := map[string]string{}
	allowed := append(slices.Clone(passed), spec.Env...)
	for _, kv := range host {
		name, value, ok := strings.Cut(kv, "=")
		if ok && slices.ContainsFunc(allowed, func(pattern string) bool { return matches(pattern, name) }) {
			values[name] = value
		}
	}
	maps.Copy(values, spec.SetEnv)
	for _, kv := range own {
		if name, value, ok := strings.Cut(kv, "="); ok {
			values[name] = value
		}
	}
	env := make([]string, 0, len(values))
	for _, name := range slices.Sorted(maps.Keys(values)) {
		env = append(env, name+"="+values[name])
	}
	return env
}

func matches(pattern, name string) bool {
	if prefix, ok := strings.CutSuffix(pattern, "*"); ok {
		return strings.HasPrefix(name, prefix)
	}
	return pattern == name
}

func hostEnviron(spec Spec, own []string) []string { return environ(os.Environ(), spec, own) }
