package plugins

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/types/known/structpb"

	browserv1 "github.com/droverhq/drover/proto/browser/v1"
	"github.com/droverhq/drover/proto/wire"
)

type configurer struct {
	schema *structpb.Struct
	call   func(context.Context, *structpb.Struct, *browserv1.HostSettings) ([]*browserv1.Diagnostic, error)
}

// OnConfigure takes the provider's configuration. schema is the JSON Schema of the body of its block in the config file, or
// nil when it has none to tell; fn is called once, after describe and before any other method, with the body (never nil) and
// the settings that the host gives every provider. A diagnostic of level error, with its path, refuses the configuration; so
// does an error. DecodeConfig reads the body into a Go struct. Without OnConfigure every configuration is accepted.
func (s *Server) OnConfigure(schema map[string]any, fn func(ctx context.Context, config *structpb.Struct, host *browserv1.HostSettings) ([]*browserv1.Diagnostic, error)) {
	s.mustBeOpen("OnConfigure")
	if s.config != nil {
		panic("plugins: OnConfigure is registered twice")
	}
	c := &configurer{call: fn}
	if schema != nil {
		var err error
		if c.schema, err = wire.ToStruct(schema); err != nil {
			panic(fmt.Sprintf("plugins: the config schema is no JSON: %v", err))
		}
	}
	s.config = c
}

func (s *Server) configure(ctx context.Context, r *browserv1.ConfigureRequest) (*browserv1.ConfigureResponse, error) {
	if s.config == nil {
		return &browserv1.ConfigureResponse{}, nil
	}
	config, host := r.GetConfig(), r.GetHost()
	if config == nil {
		config = &structpb.Struct{}
	}
	if host == nil {
		host = &browserv1.HostSettings{}
	}
	found, err := s.config.call(ctx, config, host)
	if err != nil {
		return nil, err
	}
	return &browserv1.ConfigureResponse{Diagnostics: found}, nil
}

var unknownField = regexp.MustCompile(`^json: unknown field "(.*)"$`)

// DecodeConfig reads a configuration into a Go struct by its json tags and gives what is wrong with it as diagnostics of
// level error: a key that the struct does not have, or a value of another type, each with its path. Nothing wrong is nil.
func DecodeConfig(config *structpb.Struct, into any) []*browserv1.Diagnostic {
	data, err := protojson.Marshal(config)
	if err != nil {
		return []*browserv1.Diagnostic{ConfigError("", "the configuration cannot be read: %v", err)}
	}
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.DisallowUnknownFields()
	err = dec.Decode(into)
	if err == nil {
		return nil
	}
	var wrong *json.UnmarshalTypeError
	if errors.As(err, &wrong) {
		return []*browserv1.Diagnostic{ConfigError(wrong.Field, "%s must be a %s, not a %s", wrong.Field, wrong.Type, wrong.Value)}
	}
	if m := unknownField.FindStringSubmatch(err.Error()); m != nil {
		return []*browserv1.Diagnostic{ConfigError(m[1], "there is no setting %q", m[1])}
	}
	return []*browserv1.Diagnostic{ConfigError("", "the configuration cannot be read: %v", err)}
}

// ConfigError makes a diagnostic that refuses a configuration because of the setting at path.
func ConfigError(path, format string, args ...any) *browserv1.Diagnostic {
	d := &browserv1.Diagnostic{Level: browserv1.Level_LEVEL_ERROR, Code: "config_invalid", Message: fmt.Sprintf(format, args...)}
	if path != "" {
		d.Path = &path
	}
	return d
}
