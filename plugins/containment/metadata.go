package containment

import (
	"net/netip"
	"slices"
	"strings"

	"github.com/droverhq/drover/proto/forbidden"
)

// resolverRules is the argument by which Chromium maps hosts; only the last one counts.
const resolverRules = "--host-resolver-rules="

// WithoutMetadata gives the arguments of a Chromium that finds no way to a cloud's metadata service by its name or address,
// wherever a page or a redirect leads. It costs nothing on the way to anywhere else. Rules among the arguments stay in force
// beside these. A name of a stranger's that resolves to such an address is not found out; a guard does that.
func WithoutMetadata(args []string) []string {
	return without(args, forbidden.Hosts, forbidden.Addrs)
}

func without(args []string, hosts []string, addrs []netip.Addr) []string {
	var rules []string
	deny := func(host string) { rules = append(rules, "MAP "+host+" ~NOTFOUND") }
	for _, h := range hosts {
		deny(h)
		deny(h + ".")
	}
	for _, a := range addrs {
		deny(a.String())
		if a.Is4() { // a browser writes mapped and compatible addresses in hexadecimal
			b := a.As4()
			hex := netip.AddrFrom16([16]byte{8: 0xff, 9: 0xff, 12: b[0], 13: b[1], 14: b[2], 15: b[3]}).String()
			low := strings.TrimPrefix(hex, "::ffff:0:")
			deny("::ffff:" + low)
			deny("::" + low)
		}
	}
	out := slices.DeleteFunc(slices.Clone(args), func(arg string) bool {
		own, is := strings.CutPrefix(arg, resolverRules)
		if is {
			rules = append(rules, own)
		}
		return is
	})
	return append(out, resolverRules+strings.Join(rules, " , "))
}
