package policy

import (
	"fmt"
	"slices"
	"strings"

	"github.com/zclconf/go-cty/cty"
)

// Variable is one thing that a rule may read. The table of all of them is what conditions are checked against, what they
// are evaluated from, and what docs/policy.md prints.
type Variable struct {
	// Object is the object that it is an attribute of: method, url, client, session or provider.
	Object string
	// Name is the attribute's name.
	Name string
	// Type is string, number, bool, list(string) or map(string).
	Type string
	// Doc says what it is, in a sentence.
	Doc string
	// Words are the only values that it can have, where there are few.
	Words []string

	get func(*view) value
}

// view is what one evaluation of a condition sees: one URL and one browser family of one provider out of the facts.
type view struct {
	facts     *Facts
	url       *URL
	candidate *Candidate
	family    string
	dict      map[string]string // the metadata, once it was read
}

// Variables lists everything that a rule may read, in the order of the documentation.
func Variables() []Variable { return slices.Clone(variables) }

var variables = []Variable{
	{"method", "name", "string", "The method that is called, such as page.open.", nil, func(v *view) value { return value{text: v.facts.Method} }},
	{"method", "group", "string", "The part of its name before the dot, such as page.", nil, func(v *view) value {
		group, _, _ := strings.Cut(v.facts.Method, ".")
		return value{text: group}
	}},
	{"method", "read_only", "bool", "True of a method that changes nothing, on the page or elsewhere.", nil, func(v *view) value { return value{yes: v.facts.ReadOnly} }},
	{"method", "custom", "string", "The custom method that provider.command names; else empty.", nil, func(v *view) value { return value{text: v.facts.Custom} }},

	{"url", "given", "bool", "True when the call has a URL. Without one every other attribute is empty.", nil, func(v *view) value { return value{yes: v.url.Text != ""} }},
	{"url", "scheme", "string", "The scheme in lower case, such as https.", nil, func(v *view) value { return value{text: v.url.Scheme} }},
	{"url", "host", "string", "The host in lower case, or the address in its one form, without brackets.", nil, func(v *view) value { return value{text: v.url.Host} }},
	{"url", "port", "number", "The port; the scheme's own when the URL does not say; 0 without one.", nil, func(v *view) value { return value{num: float64(v.url.Port)} }},
	{"url", "path", "string", "The path, without the query.", nil, func(v *view) value { return value{text: v.url.Path} }},
	{"url", "domain", "string", "The registrable domain: example.co.uk of a.b.example.co.uk; empty of an address.", nil, func(v *view) value { return value{text: v.url.Domain()} }},

	{"client", "name", "string", "Who calls: a token's name, or the local user's.", nil, func(v *view) value { return value{text: v.facts.Client.Name} }},
	{"client", "labels", "list(string)", "The labels of the token and of its client block.", nil, func(v *view) value { return value{list: v.facts.Client.Labels} }},

	{"session", "client_session_id", "string", "What the client calls the session.", nil, func(v *view) value { return value{text: v.facts.Session.ClientSessionID} }},
	{"session", "browser_preference", "string", "The browser that was asked for: auto, a family, or a product.", nil, func(v *view) value {
		return value{text: or(strings.ToLower(v.facts.Session.BrowserPreference), "auto")}
	}},
	{"session", "isolation", "string", "How it is kept apart from others.", []string{"per_client_session", "per_jcode_session", "shared"}, func(v *view) value {
		return value{text: or(v.facts.Session.Isolation, "per_client_session")}
	}},
	{"session", "attach", "string", "Whether it may, should or must attach to the person's own browser.", []string{"never", "prefer", "require"}, func(v *view) value {
		return value{text: or(v.facts.Session.Attach, "never")}
	}},
	{"session", "persist", "bool", "True when its profile is kept.", nil, func(v *view) value { return value{yes: v.facts.Session.Persist} }},
	{"session", "metadata", "map(string)", "What the client says of it; a key that it does not say is empty.", nil, (*view).meta},

	{"provider", "id", "string", "The provider's id: its block's label, or its binary's name.", nil, func(v *view) value { return value{text: v.candidate.ID} }},
	{"provider", "plugin", "string", "The name of its binary, such as cdp.", nil, func(v *view) value { return value{text: v.candidate.Plugin} }},
	{"provider", "family", "string", "The browser family in question; a provider of several is asked about once for each.", []string{"chromium", "firefox", "webkit", ""}, func(v *view) value { return value{text: v.family} }},
	{"provider", "version", "string", "The provider's own version; empty until it has spoken.", nil, func(v *view) value { return value{text: v.candidate.Version} }},
	{"provider", "tier", "string", "What the conformance suite found.", tierWords, func(v *view) value { return value{text: or(v.candidate.Tier, "candidate")} }},
	{"provider", "availability", "string", "How it is now.", []string{"ready", "degraded", "unavailable"}, func(v *view) value {
		return value{text: or(v.candidate.Availability, "ready")}
	}},
	{"provider", "features", "list(string)", "The features that it has.", nil, func(v *view) value { return value{list: v.candidate.Features} }},
	{"provider", "latency", "number", "How long its calls took of late, in milliseconds; 0 until there were some.", nil, func(v *view) value { return value{num: float64(v.candidate.Latency)} }},
	{"provider", "sessions", "number", "How many sessions it has.", nil, func(v *view) value { return value{num: float64(v.candidate.Sessions)} }},
}

func or(s, otherwise string) string {
	if s == "" {
		return otherwise
	}
	return s
}

func (v *view) meta() value {
	if v.dict == nil {
		v.dict = make(map[string]string, len(v.facts.Session.Metadata))
		for k, x := range v.facts.Session.Metadata {
			switch x := x.(type) {
			case string:
				v.dict[k] = x
			case nil, map[string]any, []any:
			default:
				v.dict[k] = fmt.Sprint(x)
			}
		}
	}
	return value{dict: v.dict}
}

func (v Variable) ctyType() cty.Type {
	switch v.Type {
	case "number":
		return cty.Number
	case "bool":
		return cty.Bool
	case "list(string)":
		return cty.List(cty.String)
	case "map(string)":
		return cty.Map(cty.String)
	default:
		return cty.String
	}
}

// objects are the roots of the table.
var objects = []string{"method", "url", "client", "session", "provider"}

// unknowns gives every object with attributes that have a type and no value yet, for the check of a condition.
func unknowns() map[string]cty.Value {
	out := map[string]cty.Value{}
	for _, name := range objects {
		attrs := map[string]cty.Value{}
		for _, v := range variables {
			if v.Object == name {
				attrs[v.Name] = cty.UnknownVal(v.ctyType()).RefineNotNull()
			}
		}
		out[name] = cty.ObjectVal(attrs)
	}
	return out
}

// find gives the variable of an object's attribute.
func find(object, name string) (Variable, bool) {
	for _, v := range variables {
		if v.Object == object && v.Name == name {
			return v, true
		}
	}
	return Variable{}, false
}

func attributes(object string) []string {
	var out []string
	for _, v := range variables {
		if v.Object == object {
			out = append(out, v.Name)
		}
	}
	return out
}
