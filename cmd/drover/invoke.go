package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"google.golang.org/protobuf/proto"

	browserv1 "github.com/droverhq/drover/proto/browser/v1"
	"github.com/droverhq/drover/proto/catalog"
	"github.com/droverhq/drover/proto/fault"
	"github.com/droverhq/drover/proto/wire"
)

// run is one command of a method: find or start the daemon, make sure of the session, call, print.
func (mc *methodCommand) run(cmd *cobra.Command, args []string) error {
	ctx := cmd.Context()
	params, err := mc.params(args)
	if err != nil {
		return asUsage(err)
	}
	if mc.app.parsed != nil {
		return mc.app.parsed(params)
	}
	mc.shape(params)
	l, err := mc.app.connect(ctx)
	if err != nil {
		return err
	}
	defer l.close()
	if mc.method.Name == "session.close" {
		err = mc.app.findSession(ctx, l, params)
	} else {
		err = mc.app.addSession(ctx, l, mc.method, params)
	}
	if err != nil {
		return err
	}
	if _, upload := params["paths"]; upload {
		if mc.staged, err = mc.app.stage(ctx, params); err != nil {
			return err
		}
	}
	ans, err := l.call(ctx, mc.method, params)
	if err != nil {
		return err
	}
	return mc.print(ctx, l, params, ans)
}

// asUsage makes a mistake of an argument what it is: a wrong command line.
func asUsage(err error) error {
	if e := fault.From(err); e.Code != fault.InternalError {
		return e
	}
	return usage("%v", err)
}

// addSession ensures the session of --session for a method that is about one, unless the params name it already.
func (a *app) addSession(ctx context.Context, l *link, m *catalog.Method, params map[string]any) error {
	sd := m.Request.Descriptor().Fields().ByName("session_id")
	if sd == nil || params["session_id"] != nil {
		return nil
	}
	if !m.NeedsSession() && params["provider_id"] != nil { // a custom method of the provider itself
		return nil
	}
	ans, err := l.call(ctx, must("session.ensure"), a.ensureParams())
	if err != nil {
		return err
	}
	var s browserv1.EnsureSessionResponse
	if err := wire.Unmarshal(ans.Result, &s); err != nil {
		return fault.New(fault.InternalError, "the result of session.ensure cannot be read: %v", err).Cause(err)
	}
	a.warn(ans.Warnings)
	params["session_id"] = s.GetSessionId()
	return nil
}

// findSession looks the session of --session up without making one.
func (a *app) findSession(ctx context.Context, l *link, params map[string]any) error {
	if params["session_id"] != nil {
		return nil
	}
	sessions, err := call[*browserv1.ListSessionsResponse](ctx, l, "session.list", map[string]any{})
	if err != nil {
		return err
	}
	for _, s := range sessions.GetSessions() {
		if s.GetClientSessionId() == a.global.session {
			params["session_id"] = s.GetSessionId()
			return nil
		}
	}
	return fault.New(fault.SessionNotFound, "there is no session %q", a.global.session).Hint("drover session list shows those there are")
}

// shape fills in what a person at a terminal wants and a program does not.
func (mc *methodCommand) shape(params map[string]any) {
	switch mc.method.Name {
	case "page.snapshot":
		if _, given := params["format"]; !given && !mc.app.global.json {
			if params["include_html"] == nil && params["include_dom"] == nil {
				params["format"] = "outline"
			}
			if params["include_text"] == nil {
				params["include_text"] = false
			}
		}
	case "page.screenshot":
		ext := strings.ToLower(filepath.Ext(mc.file))
		if _, given := params["format"]; !given && (ext == ".jpg" || ext == ".jpeg") {
			params["format"] = "jpeg"
		}
	}
}

// addFileFlags adds the flag of the one command that writes bytes and has no word for the file.
func (mc *methodCommand) addFileFlags() {
	if mc.method.Name == "artifact.get" {
		mc.cmd.Flags().StringVar(&mc.file, "output", "", "write it to this `FILE`; - is stdout")
	}
}

// print tells the result: with --json as it came, and otherwise for a person.
func (mc *methodCommand) print(ctx context.Context, l *link, params map[string]any, ans answer) error {
	a := mc.app
	a.warn(ans.Warnings)
	resp := mc.method.NewResponse()
	if err := wire.Unmarshal(ans.Result, resp); err != nil {
		return fault.New(fault.InternalError, "the result of %s cannot be read: %v", mc.method.Name, err).Cause(err)
	}
	switch r := resp.(type) {
	case *browserv1.ScreenshotResponse:
		if !a.global.json || mc.file != "" {
			return mc.saveScreenshot(ctx, l, params, r)
		}
	case *browserv1.GetArtifactResponse:
		if !a.global.json {
			return mc.saveArtifact(ctx, l, params, r)
		}
	case *browserv1.SetFilesResponse:
		unstage(r, mc.staged)
		result, _, err := wire.MarshalResponse(r)
		if err != nil {
			return err
		}
		ans.Result = result
	}
	if a.global.json {
		a.printJSON(ans.Result)
	} else {
		a.printMessage(resp)
	}
	return outcome(resp)
}

// outcome gives the exit status that is no error: a wait that was not satisfied, a check that failed.
func outcome(resp proto.Message) error {
	switch r := resp.(type) {
	case *browserv1.WaitResponse:
		if !r.GetSatisfied() {
			return silent{exitTimeout}
		}
	case *browserv1.VerifyResponse:
		for _, c := range r.GetChecks() {
			if c.GetStatus() == browserv1.CheckStatus_CHECK_STATUS_FAIL {
				return silent{exitFailed}
			}
		}
	}
	return nil
}

// saveScreenshot writes the picture to FILE, or to a new file in the working folder, and prints its path.
func (mc *methodCommand) saveScreenshot(ctx context.Context, l *link, params map[string]any, r *browserv1.ScreenshotResponse) error {
	data := r.GetImage()
	if r.GetImageRef() != "" {
		var err error
		if data, err = fetch(ctx, l, params["session_id"], r.GetImageRef()); err != nil {
			return err
		}
	}
	file := mc.file
	if file == "-" {
		_, err := mc.app.out.Write(data)
		return err
	}
	if file == "" {
		file = "screenshot-" + time.Now().Format("20060102-150405.000") + map[bool]string{true: ".jpg", false: ".png"}[r.GetMediaType() == "image/jpeg"]
	}
	path, err := writeFile(file, data)
	if err != nil {
		return err
	}
	if mc.app.global.json {
		r.Image, r.ImageRef = nil, nil
		result, _, err := wire.MarshalResponse(r)
		if err != nil {
			return err
		}
		mc.app.printJSON(addField(result, "file", path))
		return nil
	}
	fmt.Fprintln(mc.app.out, path)
	return nil
}

// saveArtifact writes an artifact, or the part that was asked for, to --output or stdout.
func (mc *methodCommand) saveArtifact(ctx context.Context, l *link, params map[string]any, r *browserv1.GetArtifactResponse) error {
	data := r.GetData()
	if _, part := params["limit"]; !r.GetEof() && !part && params["offset"] == nil {
		var err error
		if data, err = fetch(ctx, l, params["session_id"], fmt.Sprint(params["ref"])); err != nil {
			return err
		}
	}
	if mc.file == "" && terminal(mc.app.out) {
		return usage("%d bytes of %s are not for a terminal", len(data), r.GetMediaType()).Hint("give --output FILE, or --output - for stdout")
	}
	if mc.file == "" || mc.file == "-" {
		_, err := mc.app.out.Write(data)
		return err
	}
	path, err := writeFile(mc.file, data)
	if err == nil {
		fmt.Fprintln(mc.app.out, path)
	}
	return err
}

// fetch reads an artifact whole.
func fetch(ctx context.Context, l *link, session any, ref string) ([]byte, error) {
	var data []byte
	for {
		part, err := call[*browserv1.GetArtifactResponse](ctx, l, "artifact.get",
			map[string]any{"session_id": session, "ref": ref, "offset": len(data)})
		if err != nil {
			return nil, err
		}
		data = append(data, part.GetData()...)
		if part.GetEof() || len(part.GetData()) == 0 {
			return data, nil
		}
	}
}

func writeFile(name string, data []byte) (string, error) {
	path, err := absolute(name)
	if err != nil {
		return "", err
	}
	if err := os.WriteFile(path, data, 0o644); err != nil { //nolint:gosec // what a person saves is as readable as their other files
		return "", fault.New(fault.PermissionDenied, "the file cannot be written: %v", err).Reason("path_refused").Cause(err)
	}
	return path, nil
}

// addField adds one text to a JSON object.
func addField(object []byte, name, text string) []byte {
	value := fmt.Sprintf("%q:%s}", name, jsonText(text))
	head := object[:len(object)-1]
	if len(head) > 1 {
		head = append(head, ',')
	}
	return append(head, value...)
}
