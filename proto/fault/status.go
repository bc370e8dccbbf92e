package fault

import (
	"errors"
	"math"
	"strings"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/structpb"

	browserv1 "github.com/droverhq/drover/proto/browser/v1"
)

// grpcCodes maps every code of the protocol to the gRPC code that a plain gRPC client sees.
var grpcCodes = map[Code]codes.Code{
	UnsupportedMethod:    codes.Unimplemented,
	UnsupportedTarget:    codes.FailedPrecondition,
	InvalidRequest:       codes.InvalidArgument,
	InvalidSelector:      codes.InvalidArgument,
	ElementNotFound:      codes.NotFound,
	ElementNotActionable: codes.FailedPrecondition,
	NavigationTimeout:    codes.DeadlineExceeded,
	NotReady:             codes.Unavailable,
	SetupRequired:        codes.FailedPrecondition,
	PermissionDenied:     codes.PermissionDenied,
	BrowserNotRunning:    codes.Aborted,
	SessionNotFound:      codes.NotFound,
	PageNotFound:         codes.NotFound,
	InternalError:        codes.Internal,
}

// Proto gives the error as a message.
func (e *Error) Proto() *browserv1.Error {
	return &browserv1.Error{Code: e.Code, Message: clean(e.Message), Retryable: e.Retryable, Details: structOf(e.Details)}
}

// FromProto reads an error from a message.
func FromProto(p *browserv1.Error) *Error {
	e := &Error{Code: p.GetCode(), Message: p.GetMessage(), Retryable: p.GetRetryable(), Details: p.GetDetails().AsMap()}
	if e.Code == browserv1.ErrorCode_ERROR_CODE_UNSPECIFIED {
		e.Code = InternalError
	}
	return e
}

// Status gives any error as a gRPC status that carries the whole fault; nil for nil.
func Status(err error) *status.Status {
	if err == nil {
		return nil
	}
	e := From(err)
	st := status.New(grpcCodes[e.Code], clean(e.Error()))
	if with, derr := st.WithDetails(e.Proto()); derr == nil {
		return with
	}
	return st
}

// FromStatus reads a fault from an error of a gRPC call: the fault that it carries, or what its gRPC code comes to. A
// message over the size limit is invalid_request, payload_too_large. It gives nil for nil.
func FromStatus(err error) *Error {
	if err == nil {
		return nil
	}
	var own *Error
	if errors.As(err, &own) {
		return own
	}
	st, ok := status.FromError(err)
	if !ok {
		return From(err)
	}
	for _, d := range st.Details() {
		if p, ok := d.(*browserv1.Error); ok {
			return FromProto(p).Clone().Cause(err)
		}
	}
	switch st.Code() {
	case codes.Unimplemented:
		return New(UnsupportedMethod, "%s", st.Message()).Cause(err)
	case codes.DeadlineExceeded:
		return New(NotReady, "the call ran out of time").Reason("deadline_exceeded").Cause(err)
	case codes.Canceled:
		return New(NotReady, "the call was cancelled").Reason("cancelled").Cause(err)
	case codes.Unavailable:
		return New(BrowserNotRunning, "the provider's process is gone").Reason("provider_exited").Cause(err)
	case codes.ResourceExhausted:
		if strings.Contains(st.Message(), "larger than max") {
			return New(InvalidRequest, "the message is too large: %s", st.Message()).Reason("payload_too_large").Cause(err)
		}
		return New(NotReady, "%s", st.Message()).Reason("capacity").Cause(err)
	case codes.PermissionDenied, codes.Unauthenticated:
		return New(PermissionDenied, "%s", st.Message()).Cause(err)
	case codes.InvalidArgument:
		return New(InvalidRequest, "%s", st.Message()).Cause(err)
	default:
		return New(InternalError, "%s", st.Message()).Cause(err)
	}
}

func structOf(m map[string]any) *structpb.Struct {
	s := &structpb.Struct{Fields: make(map[string]*structpb.Value, len(m))}
	for k, v := range m {
		s.Fields[clean(k)] = valueOf(v)
	}
	return s
}

// valueOf takes the shapes that details are made of; anything else is told by its text, so that an error never gets
// lost for the sake of a detail.
func valueOf(v any) *structpb.Value {
	switch v := v.(type) {
	case nil:
		return structpb.NewNullValue()
	case string:
		return structpb.NewStringValue(clean(v))
	case []string:
		l := make([]*structpb.Value, len(v))
		for i, s := range v {
			l[i] = structpb.NewStringValue(clean(s))
		}
		return structpb.NewListValue(&structpb.ListValue{Values: l})
	case []any:
		l := make([]*structpb.Value, len(v))
		for i, x := range v {
			l[i] = valueOf(x)
		}
		return structpb.NewListValue(&structpb.ListValue{Values: l})
	case []map[string]any:
		l := make([]*structpb.Value, len(v))
		for i, x := range v {
			l[i] = structpb.NewStructValue(structOf(x))
		}
		return structpb.NewListValue(&structpb.ListValue{Values: l})
	case map[string]any:
		return structpb.NewStructValue(structOf(v))
	case float64:
		if math.IsNaN(v) || math.IsInf(v, 0) {
			return structpb.NewNullValue()
		}
		return structpb.NewNumberValue(v)
	case *structpb.Value:
		return v
	case *structpb.Struct:
		return structpb.NewStructValue(v)
	}
	if x, err := structpb.NewValue(v); err == nil {
		return x
	}
	return structpb.NewStringValue(clean(textOf(v)))
}
