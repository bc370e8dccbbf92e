package firefox

import (
	"fmt"
	"strconv"
	"strings"
)

// netErrors are the results of Gecko's network (xpcom/base/ErrorList.py, module NETWORK) that webNavigation gives as numbers.
var netErrors = map[uint32]string{
	0x804b0002: "NS_BINDING_ABORTED", 0x804b0003: "NS_BINDING_REDIRECTED", 0x804b0004: "NS_BINDING_RETARGETED", 0x804b000a: "NS_ERROR_MALFORMED_URI",
	0x804b000d: "NS_ERROR_CONNECTION_REFUSED", 0x804b000e: "NS_ERROR_NET_TIMEOUT", 0x804b0010: "NS_ERROR_OFFLINE",
	0x804b0012: "NS_ERROR_UNKNOWN_PROTOCOL", 0x804b0013: "NS_ERROR_PORT_ACCESS_NOT_ALLOWED", 0x804b0014: "NS_ERROR_NET_RESET",
	0x804b001e: "NS_ERROR_UNKNOWN_HOST", 0x804b001f: "NS_ERROR_REDIRECT_LOOP", 0x804b0047: "NS_ERROR_NET_INTERRUPT",
	0x804b0048: "NS_ERROR_PROXY_CONNECTION_REFUSED", 0x804b0052: "NS_ERROR_DOCUMENT_NOT_CACHED", 0x804b0054: "NS_ERROR_NET_PARTIAL_TRANSFER",
	0x805d001e: "NS_ERROR_PARSED_DATA_CACHED",
}

// code reads the number of an error such as "Error code 2152398850".
func code(text string) uint32 {
	i := strings.LastIndexByte(text, ' ')
	n, err := strconv.ParseUint(text[i+1:], 10, 32)
	if err != nil {
		return 0
	}
	return uint32(n)
}

// netError names what the browser said of a failed navigation.
func netError(text string) string {
	n := code(text)
	switch name := netErrors[n]; {
	case name != "":
		return name
	case n != 0:
		return fmt.Sprintf("Gecko error 0x%x", n)
	}
	return text
}

// brokenOff says whether a navigation was stopped, as one is that turns into a download.
func brokenOff(text string) bool {
	name := netErrors[code(text)]
	return name == "NS_BINDING_ABORTED" || name == "NS_BINDING_RETARGETED" || strings.Contains(text, "ABORTED")
}
