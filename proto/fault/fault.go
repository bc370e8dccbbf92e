// Package fault is the one error type of Drover. A failed call carries one of the protocol's fourteen codes, a reason
// that refines it, whether and how to try again, and what to do next. Between processes it travels as a detail of the
// gRPC status; over JSON as the envelope's error object. Branch on codes and reasons, never on text.
package fault

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"

	browserv1 "github.com/droverhq/drover/proto/browser/v1"
)

// Code is one of the protocol's closed set of error codes.
type Code = browserv1.ErrorCode

// The fourteen codes of the protocol.
const (
	UnsupportedMethod    = browserv1.ErrorCode_ERROR_CODE_UNSUPPORTED_METHOD
	UnsupportedTarget    = browserv1.ErrorCode_ERROR_CODE_UNSUPPORTED_TARGET
	InvalidRequest       = browserv1.ErrorCode_ERROR_CODE_INVALID_REQUEST
	InvalidSelector      = browserv1.ErrorCode_ERROR_CODE_INVALID_SELECTOR
	ElementNotFound      = browserv1.ErrorCode_ERROR_CODE_ELEMENT_NOT_FOUND
	ElementNotActionable = browserv1.ErrorCode_ERROR_CODE_ELEMENT_NOT_ACTIONABLE
	NavigationTimeout    = browserv1.ErrorCode_ERROR_CODE_NAVIGATION_TIMEOUT
	NotReady             = browserv1.ErrorCode_ERROR_CODE_NOT_READY
	SetupRequired        = browserv1.ErrorCode_ERROR_CODE_SETUP_REQUIRED
	PermissionDenied     = browserv1.ErrorCode_ERROR_CODE_PERMISSION_DENIED
	BrowserNotRunning    = browserv1.ErrorCode_ERROR_CODE_BROWSER_NOT_RUNNING
	SessionNotFound      = browserv1.ErrorCode_ERROR_CODE_SESSION_NOT_FOUND
	PageNotFound         = browserv1.ErrorCode_ERROR_CODE_PAGE_NOT_FOUND
	InternalError        = browserv1.ErrorCode_ERROR_CODE_INTERNAL_ERROR
)

// Keys of Details that have a meaning everywhere.
const (
	KeyReason   = "reason"
	KeyRetry    = "retry"
	KeyProvider = "provider_id"
	KeyMethod   = "method"
	KeyField    = "field"

	KeyRetryAfter = "after_ms"
)

// Error is a failed call. The zero value is no error; make one with New. The builders change the error in place and
// return it, so they are for the place that makes it; an Error that has been returned is not changed any more.
type Error struct {
	Code      Code
	Message   string
	Retryable bool
	// Details holds JSON-able values: reason, retry, provider_id, field and whatever else helps.
	Details map[string]any
	cause   error
}

// New makes an error with a code and a message.
func New(code Code, format string, args ...any) *Error {
	e := &Error{Code: code, Message: fmt.Sprintf(format, args...), Details: map[string]any{}}
	e.applyRetry()
	return e
}

// Error gives the code, the reason and the message.
func (e *Error) Error() string {
	if r := e.ReasonWord(); r != "" {
		return Word(e.Code) + "/" + r + ": " + e.Message
	}
	return Word(e.Code) + ": " + e.Message
}

// Unwrap gives the cause.
func (e *Error) Unwrap() error { return e.cause }

// ReasonWord gives details.reason, or nothing.
func (e *Error) ReasonWord() string {
	s, _ := e.Details[KeyReason].(string)
	return s
}

// Reason refines the code and sets whether the call may be tried again as the protocol's table says.
func (e *Error) Reason(reason string) *Error {
	e.Details[KeyReason] = reason
	e.applyRetry()
	return e
}

// Retry says how to try again: "same" or "new_session"; "" for not at all.
func (e *Error) Retry(how string) *Error {
	e.Retryable = how != ""
	delete(e.Details, KeyRetryAfter)
	if how == "" {
		delete(e.Details, KeyRetry)
	} else {
		e.Details[KeyRetry] = how
	}
	return e
}

// RetryAfter says that the same call may succeed after some milliseconds: details.retry is after_ms, details.after_ms the
// number.
func (e *Error) RetryAfter(ms int) *Error {
	e.Retry("after_ms")
	return e.With(KeyRetryAfter, ms)
}

// Hint appends the next step to the message.
func (e *Error) Hint(format string, args ...any) *Error {
	e.Message = strings.TrimRight(e.Message, ". ") + "; " + fmt.Sprintf(format, args...)
	return e
}

// Field names the field of the request that is wrong.
func (e *Error) Field(path string) *Error { return e.With(KeyField, path) }

// Provider names the provider that had a part in it, unless one is named already.
func (e *Error) Provider(id string) *Error { return e.withDefault(KeyProvider, id) }

// Method names the method that failed, unless one is named already.
func (e *Error) Method(name string) *Error { return e.withDefault(KeyMethod, name) }

// With sets a detail. The value must be JSON-able.
func (e *Error) With(key string, value any) *Error {
	e.Details[key] = value
	return e
}

// Cause keeps the error that led to it, for errors.Is and errors.As.
func (e *Error) Cause(err error) *Error {
	e.cause = err
	return e
}

// Clone gives a copy whose details can be changed.
func (e *Error) Clone() *Error {
	c := *e
	c.Details = maps.Clone(e.Details)
	if c.Details == nil {
		c.Details = map[string]any{}
	}
	return &c
}

func (e *Error) withDefault(key, value string) *Error {
	if _, ok := e.Details[key]; !ok && value != "" {
		e.Details[key] = value
	}
	return e
}

// applyRetry follows the table of reasons in the protocol.
func (e *Error) applyRetry() {
	switch e.ReasonWord() {
	case "covered", "moving", "not_visible", "zero_size", "dialog_open", "navigation_failed":
		e.Retry("same")
	case "deadline_exceeded":
		e.Retry("same")
	case "in_use", "capacity":
		e.RetryAfter(1000)
	case "provider_exited", "session_lost":
		e.Retry("new_session")
	case "":
		switch e.Code {
		case BrowserNotRunning:
			e.Retry("new_session")
		case NavigationTimeout:
			e.Retry("same")
		default:
			e.Retry("")
		}
	default:
		e.Retry("")
	}
}

// CodeOf gives the code of any error; InternalError where it has none, and 0 for nil.
func CodeOf(err error) Code {
	if err == nil {
		return browserv1.ErrorCode_ERROR_CODE_UNSPECIFIED
	}
	return From(err).Code
}

// ReasonOf gives details.reason of any error.
func ReasonOf(err error) string {
	if err == nil {
		return ""
	}
	return From(err).ReasonWord()
}

// From gives any error as an Error: one that is in its chain, not_ready/deadline_exceeded for a context that ran out,
// not_ready/cancelled for one that was cancelled, and internal_error for the rest. It gives nil for nil.
func From(err error) *Error {
	if err == nil {
		return nil
	}
	var e *Error
	if errors.As(err, &e) {
		return e
	}
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return New(NotReady, "the call ran out of time").Reason("deadline_exceeded").Cause(err)
	case errors.Is(err, context.Canceled):
		return New(NotReady, "the call was cancelled").Reason("cancelled").Cause(err)
	}
	return New(InternalError, "%s", err.Error()).Cause(err)
}

// Word gives a code as the protocol writes it, such as element_not_found.
func Word(c Code) string {
	if c == browserv1.ErrorCode_ERROR_CODE_UNSPECIFIED {
		c = InternalError
	}
	return strings.ToLower(strings.TrimPrefix(c.String(), "ERROR_CODE_"))
}

// ParseCode reads a code as the protocol writes it; false when there is no such code.
func ParseCode(word string) (Code, bool) {
	v, ok := browserv1.ErrorCode_value["ERROR_CODE_"+strings.ToUpper(word)]
	return Code(v), ok && v != 0
}
