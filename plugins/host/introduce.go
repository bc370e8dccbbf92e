package host

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"

	browserv1 "github.com/droverhq/drover/proto/browser/v1"
	"github.com/droverhq/drover/proto/catalog"
	"github.com/droverhq/drover/proto/fault"
)

// introduce asks a new provider what it is and gives it its configuration.
func (i *Instance) introduce(ctx context.Context) error {
	i.spec.stage(StateDescribing)
	d, err := Ask[*browserv1.DescribeResponse](ctx, i, &browserv1.DescribeRequest{})
	if err != nil {
		return err
	}
	if err := speaks(d.GetProtocolVersion()); err != nil {
		return i.label(err, "provider.describe")
	}
	i.describe = d
	return i.configure(ctx)
}

// speaks refuses a protocol version whose major number, or minor number below 1.0, is another.
func speaks(version string) error {
	if version == catalog.Version || strings.HasPrefix(version, catalog.Version+".") {
		return nil
	}
	return fault.New(fault.SetupRequired, "it speaks protocol version %q, and this is %s", version, catalog.Version).
		Reason("protocol_version").Hint("install a provider that was built for version %s", catalog.Version)
}

// name puts the provider's name in this broker, and what only the host knows, into a description.
func (i *Instance) name(d *browserv1.DescribeResponse) {
	d.ProviderId = i.spec.ID
	if d.GetProviderLabel() == "" {
		d.ProviderLabel = i.spec.ID
	}
	if d.GetCapabilities() == nil {
		d.Capabilities = &browserv1.Capabilities{}
	}
	d.CertificationTier = i.spec.Tier(i.digest)
}

// stamp puts what the host knows into a status and tells whoever supervises the instance.
func (i *Instance) stamp(st *browserv1.StatusResponse) {
	st.ProviderId = i.spec.ID
	st.Pid = int32(i.PID())
	if i.onStatus != nil {
		i.onStatus(st)
	}
}

// configure gives the provider its configuration and refuses the provider when it refuses that.
func (i *Instance) configure(ctx context.Context) error {
	config := i.spec.Config
	if config == nil {
		config = &structpb.Struct{}
	}
	settings := &browserv1.HostSettings{}
	if i.spec.Settings != nil {
		settings = proto.Clone(i.spec.Settings).(*browserv1.HostSettings)
	}
	if settings.GetRunDir() == "" && i.dir != "" {
		settings.RunDir = filepath.Join(i.dir, "files")
		if err := os.MkdirAll(settings.RunDir, 0o700); err != nil {
			return fault.New(fault.InternalError, "the folder %s cannot be made: %v", settings.RunDir, err).Provider(i.spec.ID).Cause(err)
		}
	}
	if settings.GetBrokerPid() == 0 {
		settings.BrokerPid = int32(os.Getpid())
	}
	resp, err := Ask[*browserv1.ConfigureResponse](ctx, i, &browserv1.ConfigureRequest{Config: config, Host: settings})
	if err != nil {
		if fault.CodeOf(err) != fault.UnsupportedMethod {
			return err
		}
		if len(config.GetFields()) > 0 {
			return i.label(fault.New(fault.InvalidRequest, "the provider %s takes no configuration", i.spec.ID).
				Reason("config_invalid").Hint("remove the settings from its block of the config"), "provider.configure")
		}
		return nil
	}
	return i.judge(resp.GetDiagnostics())
}

// judge logs the findings about a configuration and makes one fault of those that refuse it.
func (i *Instance) judge(found []*browserv1.Diagnostic) error {
	var wrong []string
	var details []any
	for _, d := range found {
		text := d.GetMessage()
		if d.GetPath() != "" {
			text = fmt.Sprintf("%s: %s", d.GetPath(), text)
		}
		if d.GetLevel() != browserv1.Level_LEVEL_ERROR {
			i.spec.Logger.Warn("provider configuration", "provider_id", i.spec.ID, "code", d.GetCode(), "path", d.GetPath())
			continue
		}
		wrong = append(wrong, text)
		details = append(details, map[string]any{"path": d.GetPath(), "code": d.GetCode(), "message": d.GetMessage()})
	}
	if len(wrong) == 0 {
		return nil
	}
	return i.label(fault.New(fault.InvalidRequest, "the provider %s refuses its configuration: %s", i.spec.ID, strings.Join(wrong, "; ")).
		Reason("config_invalid").With("diagnostics", details), "provider.configure")
}
