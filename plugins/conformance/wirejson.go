package conformance

import "encoding/json"

// objectOf reads an object that was just written; it is never nil.
func objectOf(data []byte) map[string]any {
	out := map[string]any{}
	_ = json.Unmarshal(data, &out) // it was just written
	return out
}

func listOf(data []byte) []any {
	var out []any
	_ = json.Unmarshal(data, &out) // it was just written
	return out
}

// text gives a member that is a text; "" where it is none.
func text(m map[string]any, key string) string {
	s, _ := m[key].(string)
	return s
}

// objects gives the objects of a list.
func objects(v any) []map[string]any {
	list, _ := v.([]any)
	var out []map[string]any
	for _, e := range list {
		if m, ok := e.(map[string]any); ok {
			out = append(out, m)
		}
	}
	return out
}
