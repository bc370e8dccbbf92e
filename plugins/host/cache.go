package host

import (
	"crypto/sha256"
	"encoding/hex"
	"os"
	"path/filepath"
	"strings"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	browserv1 "github.com/droverhq/drover/proto/browser/v1"
)

// descriptions remembers what binaries said of themselves, a JSON file each, so that a provider need not run to be known.
// The key is the binary's digest with its arguments: another binary is asked anew.
type descriptions struct{ dir string }

func (d descriptions) file(digest string, args []string) string {
	sum := sha256.Sum256([]byte(digest + "\x00" + strings.Join(args, "\x00")))
	return filepath.Join(d.dir, hex.EncodeToString(sum[:16])+".json")
}

// load gives the remembered description under the provider's name, or nil.
func (d descriptions) load(digest string, spec Spec) *browserv1.DescribeResponse {
	if d.dir == "" || digest == "" {
		return nil
	}
	data, err := os.ReadFile(d.file(digest, spec.Args))
	if err != nil {
		return nil
	}
	desc := &browserv1.DescribeResponse{}
	if (protojson.UnmarshalOptions{DiscardUnknown: true}).Unmarshal(data, desc) != nil || speaks(desc.GetProtocolVersion()) != nil {
		return nil // another version's, or broken: ask again
	}
	desc.ProviderId = spec.ID
	desc.CertificationTier = spec.Tier(digest)
	return desc
}

// store remembers a description. A cache that cannot be written only means that the provider is asked again.
func (d descriptions) store(digest string, spec Spec, desc *browserv1.DescribeResponse) {
	if d.dir == "" || digest == "" {
		return
	}
	desc = proto.Clone(desc).(*browserv1.DescribeResponse)
	desc.ProviderId = ""
	data, err := (protojson.MarshalOptions{Multiline: true, UseProtoNames: true}).Marshal(desc)
	if err == nil {
		err = writeFile(d.file(digest, spec.Args), append(data, '\n'))
	}
	if err != nil {
		spec.Logger.Debug("a provider's description cannot be remembered", "provider_id", spec.ID, "error", err)
	}
}

// Remembered gives what a binary said of itself when it last ran, without running it; nil where nobody remembers.
func Remembered(cacheDir string, digests *Digests, path string) *browserv1.DescribeResponse {
	digest, err := digests.Of(path)
	if err != nil {
		return nil
	}
	return descriptions{cacheDir}.load(digest, Spec{}.complete())
}
