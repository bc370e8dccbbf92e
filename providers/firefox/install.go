package firefox

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"google.golang.org/protobuf/types/known/structpb"

	browserv1 "github.com/droverhq/drover/proto/browser/v1"
	"github.com/droverhq/drover/proto/fault"
	"github.com/droverhq/drover/proto/wire"
)

var installSchema = map[string]any{
	"type": "object", "additionalProperties": false,
	"properties": map[string]any{
		"public":  map[string]any{"type": "boolean", "default": false, "description": "Answer the public Firefox Agent Bridge's add-on as well, in place of its own host."},
		"replace": map[string]any{"type": "boolean", "default": false, "description": "Overwrite a native manifest of that name which another program wrote."},
	},
}

var installResult = map[string]any{
	"type": "object", "properties": map[string]any{
		"folder":       map[string]any{"type": "string", "description": "The add-on unpacked, to load in about:debugging."},
		"xpi":          map[string]any{"type": "string", "description": "The add-on packed, unsigned."},
		"manifests":    map[string]any{"type": "array", "items": map[string]any{"type": "string"}, "description": "The native manifests that were written."},
		"connected":    map[string]any{"type": "boolean", "description": "A Firefox is connected."},
		"manual_steps": map[string]any{"type": "array", "items": map[string]any{"type": "string"}, "description": "What a person has to do."},
	},
}

// installed is what an installation wrote.
type installed struct {
	folder, xpi string
	manifests   []string
}

// install is firefox.install_extension: it writes the native manifest and the add-on's files. Loading the add-on is the person's.
func (p *Provider) install(ctx context.Context, r *browserv1.CustomRequest) (*structpb.Value, error) {
	fields := r.GetParams().GetFields()
	for name := range fields {
		if name != "public" && name != "replace" {
			return nil, fault.New(fault.InvalidRequest, "firefox.install_extension has no field %s", name).Field("params." + name)
		}
	}
	done, err := p.putInPlace(fields["public"].GetBoolValue(), fields["replace"].GetBoolValue())
	if err != nil {
		return nil, err
	}
	st, err := p.status(ctx, nil)
	if err != nil {
		return nil, err
	}
	steps := st.GetManualSteps()
	if steps == nil {
		steps = []string{}
	}
	return wire.ToValue(map[string]any{
		"folder": done.folder, "xpi": done.xpi, "manifests": done.manifests, "manual_steps": steps,
		"connected": st.GetAvailability() != browserv1.Availability_AVAILABILITY_UNAVAILABLE,
	})
}

// addonDir is where the add-on lies for Firefox to load: drover/firefox-addon under XDG_DATA_HOME, or under ~/.local/share.
func addonDir() (string, error) {
	data := os.Getenv("XDG_DATA_HOME")
	if !filepath.IsAbs(data) {
		home, err := os.UserHomeDir()
		if err != nil {
			return "", fmt.Errorf("the home folder: %w", err)
		}
		data = filepath.Join(home, ".local", "share")
	}
	return filepath.Join(data, "drover", "firefox-addon"), nil
}

// putInPlace writes everything that Firefox has to find.
func (p *Provider) putInPlace(public, replace bool) (installed, error) {
	var out installed
	binary, ok := hostBinary()
	if !ok {
		return out, fault.New(fault.SetupRequired, "drover-firefox-host was not found").Reason("native_host_missing").
			Hint("put drover-firefox-host beside drover-provider-firefox, or on PATH")
	}
	dir, err := addonDir()
	if err != nil {
		return out, err
	}
	out.folder, out.xpi = dir, dir+".xpi"
	if err := unpack(dir); err != nil {
		return out, err
	}
	data, err := pack()
	if err == nil {
		err = os.WriteFile(out.xpi, data, 0o644) //nolint:gosec // Firefox reads it; there is no secret in it
	}
	if err != nil {
		return out, err
	}
	path, err := writeManifest(appName, "Drover's host for its Firefox add-on", binary, []string{addonID}, replace)
	if err != nil {
		return out, err
	}
	out.manifests = append(out.manifests, path)
	if public {
		path, err := writeManifest(publicAppName, "Drover's host for the public Firefox Agent Bridge", binary, publicIDs, replace)
		if err != nil {
			return out, err
		}
		out.manifests = append(out.manifests, path)
	}
	return out, nil
}
