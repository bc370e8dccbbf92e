package envelope

import (
	"net/http"
	"strconv"

	"github.com/droverhq/drover/proto/fault"
)

// statuses gives every code of the protocol its HTTP status.
var statuses = map[fault.Code]int{
	fault.UnsupportedMethod:    http.StatusNotImplemented,
	fault.UnsupportedTarget:    http.StatusUnprocessableEntity,
	fault.InvalidRequest:       http.StatusBadRequest,
	fault.InvalidSelector:      http.StatusBadRequest,
	fault.ElementNotFound:      http.StatusNotFound,
	fault.ElementNotActionable: http.StatusConflict,
	fault.NavigationTimeout:    http.StatusGatewayTimeout,
	fault.NotReady:             http.StatusServiceUnavailable,
	fault.SetupRequired:        http.StatusFailedDependency,
	fault.PermissionDenied:     http.StatusForbidden,
	fault.BrowserNotRunning:    http.StatusBadGateway,
	fault.SessionNotFound:      http.StatusNotFound,
	fault.PageNotFound:         http.StatusNotFound,
	fault.InternalError:        http.StatusInternalServerError,
}

// statusOf gives the HTTP status of a fault; 200 for none.
func statusOf(err error) int {
	if err == nil {
		return http.StatusOK
	}
	switch fault.ReasonOf(err) {
	case "payload_too_large":
		return http.StatusRequestEntityTooLarge
	case "capacity":
		return http.StatusTooManyRequests
	}
	if s, ok := statuses[fault.CodeOf(err)]; ok {
		return s
	}
	return http.StatusInternalServerError
}

// writeError answers with an error alone, in the envelope's shape.
func writeError(w http.ResponseWriter, status int, err error) {
	writeJSON(w, status, err, answer(nil, nil, err))
}

func writeJSON(w http.ResponseWriter, status int, err error, body []byte) {
	h := w.Header()
	h.Set("Content-Type", "application/json")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Cache-Control", "no-store")
	if ms, ok := retryAfter(err); ok {
		h.Set("Retry-After", strconv.Itoa((ms+999)/1000))
	}
	w.WriteHeader(status)
	_, _ = w.Write(append(body, '\n')) // a caller that went away needs no answer
}

func retryAfter(err error) (int, bool) {
	if err == nil {
		return 0, false
	}
	switch ms := fault.From(err).Details[fault.KeyRetryAfter].(type) {
	case int:
		return ms, true
	case float64:
		return int(ms), true
	}
	return 0, false
}
