package grpc

import (
	"context"
	"fmt"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/protoadapt"
	"google.golang.org/protobuf/types/known/durationpb"

	browserv1 "github.com/droverhq/drover/proto/browser/v1"
	"github.com/droverhq/drover/proto/fault"
)

// domain is the domain of every ErrorInfo.
const domain = "drover"

func detailUnary(ctx context.Context, req any, _ *grpc.UnaryServerInfo, next grpc.UnaryHandler) (any, error) {
	resp, err := next(ctx, req)
	return resp, detailed(err)
}

func detailStream(srv any, ss grpc.ServerStream, _ *grpc.StreamServerInfo, next grpc.StreamHandler) error {
	return detailed(next(srv, ss))
}

// detailed adds the details of google.rpc to a status that carries a fault: ErrorInfo with the code as its reason and the
// rest as metadata, RetryInfo where the same call may succeed later, BadRequest for a field that is wrong.
func detailed(err error) error {
	st, ok := status.FromError(err)
	if err == nil || !ok {
		return err
	}
	var f *fault.Error
	for _, d := range st.Details() {
		if p, ok := d.(*browserv1.Error); ok {
			f = fault.FromProto(p)
		}
	}
	if f == nil {
		return err
	}
	info := &errdetails.ErrorInfo{Reason: fault.Word(f.Code), Domain: domain, Metadata: map[string]string{}}
	for _, key := range []string{fault.KeyReason, fault.KeyRetry, fault.KeyProvider, fault.KeyMethod, fault.KeyField} {
		if v, ok := f.Details[key]; ok {
			info.Metadata[key] = fmt.Sprint(v)
		}
	}
	details := []protoadapt.MessageV1{info}
	switch f.Details[fault.KeyRetry] {
	case "same":
		details = append(details, &errdetails.RetryInfo{RetryDelay: durationpb.New(0)})
	case "after_ms":
		if ms, ok := f.Details[fault.KeyRetryAfter].(float64); ok {
			details = append(details, &errdetails.RetryInfo{RetryDelay: durationpb.New(time.Duration(ms) * time.Millisecond)})
		}
	}
	if field, ok := f.Details[fault.KeyField].(string); ok {
		details = append(details, &errdetails.BadRequest{
			FieldViolations: []*errdetails.BadRequest_FieldViolation{{Field: field, Description: f.Message}},
		})
	}
	with, derr := st.WithDetails(details...)
	if derr != nil {
		return err
	}
	return with.Err()
}
