package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/droverhq/drover/plugins/host"
	"github.com/droverhq/drover/policy"
	"github.com/droverhq/drover/proto/fault"
	"github.com/droverhq/drover/proto/wire"
)

// checkBlocks finds what is wrong in the provider blocks of a config by what their binaries said of their settings when they
// last ran. Nothing is started: of a provider that never ran, its start tells.
func checkBlocks(cfg *policy.Config) error {
	p := findPlaces()
	digests := &host.Digests{File: filepath.Join(p.cache, "digests.json")}
	var lines []string
	var told []map[string]any
	for _, w := range wanted(cfg) {
		block := cfg.Provider(w.id)
		desc := host.Remembered(p.describe(), digests, w.path)
		if block == nil || desc.GetConfigSchema() == nil {
			continue
		}
		for _, wrong := range misfits(desc.GetConfigSchema(), w.body) {
			at := block.Place(wrong.setting)
			lines = append(lines, fmt.Sprintf("%s: provider %q: %s", at, w.id, wrong.why))
			file, line := at, 0
			if i := strings.LastIndexByte(at, ':'); i >= 0 {
				file = at[:i]
				line, _ = strconv.Atoi(at[i+1:])
			}
			told = append(told, map[string]any{"file": file, "line": line, "column": 1, "summary": "Wrong setting", "detail": wrong.why})
		}
	}
	if len(lines) == 0 {
		return nil
	}
	return fault.New(fault.InvalidRequest, "the config is refused\n%s", strings.Join(lines, "\n")).Reason("config_invalid").
		Field("config").With("mistakes", told)
}

// misfit is a setting that a provider does not take.
type misfit struct{ setting, why string }

// misfits lists the settings of a block that a schema does not know or that have another type. A schema that cannot be read
// finds nothing: the provider's start tells.
func misfits(schema, body *structpb.Struct) []misfit {
	data, err := json.Marshal(schema.AsMap())
	var s jsonschema.Schema
	if err != nil || json.Unmarshal(data, &s) != nil || len(s.Properties) == 0 {
		return nil
	}
	known := slices.Sorted(maps.Keys(s.Properties))
	closed := schema.GetFields()["additionalProperties"].GetKind()
	only, is := closed.(*structpb.Value_BoolValue)
	var out []misfit
	for _, name := range slices.Sorted(maps.Keys(body.GetFields())) {
		if s.Properties[name] == nil {
			if is && !only.BoolValue {
				out = append(out, misfit{name, unknownSetting(name, known)})
			}
			continue
		}
		whole, err := s.Properties[name].Resolve(nil)
		if err != nil {
			continue
		}
		if err := whole.Validate(body.GetFields()[name].AsInterface()); err != nil {
			out = append(out, misfit{name, fmt.Sprintf("%s: %v", name, err)})
		}
	}
	return out
}

func unknownSetting(name string, known []string) string {
	if n := wire.Nearest(name, known); n != "" {
		return fmt.Sprintf("there is no setting %q; did you mean %q?", name, n)
	}
	return fmt.Sprintf("there is no setting %q; there are %s", name, strings.Join(known, ", "))
}
