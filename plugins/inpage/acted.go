package inpage

import (
	"errors"

	"github.com/droverhq/drover/proto/fault"
)

// actedError is an error that came after input had been sent, so the page may have acted on it.
type actedError struct{ err error }

func (e *actedError) Error() string { return e.err.Error() }
func (e *actedError) Unwrap() error { return e.err }

// Acted says whether an error of Click, Type, Press, Hover or Drag came after input had been sent. A provider whose
// dialog or navigation ended the call then answers success, with the dialog or the new address.
func Acted(err error) bool {
	var a *actedError
	return errors.As(err, &a)
}

// afterInput marks an error as one that came after input had been sent.
func afterInput(err error) error {
	if err == nil || Acted(err) {
		return err
	}
	return &actedError{err}
}

// Ran tells of a script of the caller's that a navigation ended: it may be what started that, so to call it again may do it
// twice.
func Ran(err error) error {
	if e := fault.From(err); e.ReasonWord() == "navigated" {
		return e.Clone().Retry("").Hint("the script may have acted; look with page.snapshot first")
	}
	return err
}
