package policy

import (
	"slices"
	"strings"
	"time"

	"google.golang.org/protobuf/types/known/structpb"
)

// Config is the config file, read whole. Its zero values are never seen: Default and Load fill them.
type Config struct {
	// File is where it was read from; empty for the default config.
	File string
	// Hash is the SHA-256 of the text, in hex; empty for the default config.
	Hash string
	// Prefer lists provider ids in the order they are tried; those it does not name follow in the default order.
	Prefer []string
	// Providers are the configured instances, in the order of the file. When there are none, every provider that is found
	// is enabled.
	Providers   []*Provider
	Listen      Listen
	Sessions    Sessions
	Files       Files
	Passthrough []Passthrough
	Limits      Limits
	// Rules decide, in the order of the file.
	Rules []*Rule
	// Guards say what the pages of sessions may reach.
	Guards []*Guard
	// Clients add labels and limits to tokens and local users.
	Clients []*ClientBlock
	Audit   Audit
	// Tests are proofs that stand beside the rules.
	Tests []*Test
}

// Provider is one configured instance of a provider binary.
type Provider struct {
	// ID is the block's label; it is the provider_id.
	ID string
	// Plugin names the binary drover-provider-PLUGIN; the label when the block does not say.
	Plugin string
	// Path is the binary itself, where it is not to be searched for.
	Path string
	// Browser is the family or label of the browser that it is kept to; empty for all that it drives. The provider gets it
	// with its body too.
	Browser string
	// Env names variables that are passed through to the process.
	Env []string
	// MTLS is false for providers that cannot do mutual TLS.
	MTLS bool
	// Disabled keeps it out of every route.
	Disabled bool
	// Body is the rest of the block, for provider.configure.
	Body *structpb.Struct
	// Where is the file and line of the block.
	Where string

	places map[string]string
}

// Kind is the family or label of the browser that the block keeps it to; empty where it names the browser's own binary,
// which only the provider can tell the family of.
func (p *Provider) Kind() string {
	if strings.ContainsRune(p.Browser, '/') {
		return ""
	}
	return p.Browser
}

// Family gives the family of a family's or a product's name; empty of one that is not known.
func Family(browser string) string {
	switch word := strings.ToLower(browser); word {
	case "chromium", "firefox", "webkit":
		return word
	case "chrome", "edge", "brave", "opera", "vivaldi":
		return "chromium"
	case "safari":
		return "webkit"
	}
	return ""
}

// Place gives the file and line of a path in the provider's body, such as "viewport.width", or of the nearest thing that
// holds it; the block's own where there is none.
func (p *Provider) Place(path string) string {
	for path != "" {
		if at, ok := p.places[path]; ok {
			return at
		}
		path = parent(path)
	}
	return p.Where
}

// Listen says where the daemon can be reached.
type Listen struct {
	// HTTP is the address of the HTTP face; "off" for none, empty for the default.
	HTTP string
	// Socket is the path of the unix socket; empty for the default.
	Socket string
	// Hosts are names beyond the loopback ones that a Host header may carry.
	Hosts []string
	// Origins are origins of web pages that may call.
	Origins []string
}

// Sessions says how long things are kept that nobody uses.
type Sessions struct {
	// Idle is how long a session may be unused before it is closed.
	Idle time.Duration
	// Grace is how long the sessions of a WebSocket outlive it.
	Grace time.Duration
	// ProviderIdle is how long a provider process without sessions is kept.
	ProviderIdle time.Duration
	// Exit is how long a broker that was started by a command stays when it has no sessions.
	Exit time.Duration
}

// Files says which folders files may come from and go to.
type Files struct {
	// Upload lists folders, absolute; empty for the folder the caller was started in.
	Upload []string
	// Download is the folder for downloads, absolute; empty for one that goes with the session.
	Download string
	// Where is the file and line of the block; empty where none is written.
	Where string
}

// Limits bound what one caller may hold.
type Limits struct {
	// Sessions is how many live sessions a caller may have; 0 for no limit.
	Sessions int
	// Calls is how many calls of one connection may be under way; more wait.
	Calls int
	// CallsPerSecond is how many calls a caller may begin in a second; 0 for no limit.
	CallsPerSecond int
	// BytesPerMinute is how many bytes of answers a caller may get in a minute; 0 for no limit.
	BytesPerMinute int64
}

// Default is the config of a broker without a config file.
func Default() *Config {
	return &Config{
		Sessions: Sessions{Idle: 30 * time.Minute, Grace: 30 * time.Second, ProviderIdle: 5 * time.Minute, Exit: 10 * time.Minute},
		Limits:   Limits{Calls: 256},
	}
}

// defaultOrder is the order of plugins that are tried when the config does not say.
var defaultOrder = []string{"cdp", "bidi", "webdriver", "firefox", "extension"}

// Rank says how early a provider is tried: smaller is earlier, equal ones are told apart by other means.
func (c *Config) Rank(id, plugin string) int {
	if i := slices.Index(c.Prefer, id); i >= 0 {
		return i
	}
	if i := slices.Index(defaultOrder, plugin); i >= 0 {
		return len(c.Prefer) + i
	}
	return len(c.Prefer) + len(defaultOrder)
}

// Gives says whether a config has a provider of an id: as a block, or, without any block, as the plugin of that name.
func (c *Config) Gives(id, plugin string) bool {
	if len(c.Providers) == 0 {
		return id == plugin
	}
	return c.Provider(id) != nil
}

// Provider gives the configured instance of an id; nil where there is none.
func (c *Config) Provider(id string) *Provider {
	for _, p := range c.Providers {
		if p.ID == id {
			return p
		}
	}
	return nil
}
