package fault

import (
	"fmt"
	"strings"
)

// clean makes text valid UTF-8, as protobuf and JSON want it.
func clean(s string) string { return strings.ToValidUTF8(s, "\uFFFD") }

func textOf(v any) string { return fmt.Sprint(v) }
