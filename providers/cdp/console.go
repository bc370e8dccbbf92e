package cdp

import (
	"context"
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/chromedp/cdproto"
	"github.com/chromedp/cdproto/runtime"

	browserv1 "github.com/droverhq/drover/proto/browser/v1"
)

// console is what a page's scripts said, the latest maxMessages, guarded by its browser's mu.
type console struct {
	list []*browserv1.ConsoleMessage
}

const (
	maxMessages = 1000
	maxText     = 64 << 10 // bytes of one message
)

// onConsole notes a console message or an uncaught exception.
func (p *page) onConsole(m *cdproto.Message) {
	msg := message(m)
	if msg == nil {
		return
	}
	p.b.mu.Lock()
	p.console.list = append(p.console.list, msg)
	if over := len(p.console.list) - maxMessages; over > 0 {
		p.console.list = slices.Delete(p.console.list, 0, over)
	}
	p.b.mu.Unlock()
	p.s.emit("console.message", p, map[string]any{
		"level": word(msg.GetLevel().String(), "CONSOLE_LEVEL_"), "text": msg.GetText(), "url": msg.GetUrl(), "line": msg.GetLine(),
		"source": word(msg.GetSource().String(), "CONSOLE_SOURCE_"),
	})
}

func word(name, prefix string) string { return strings.ToLower(strings.TrimPrefix(name, prefix)) }

func message(m *cdproto.Message) *browserv1.ConsoleMessage {
	if string(m.Method) == runtime.ExceptionThrown.Method {
		e, ok := decode[runtime.EventExceptionThrown](m)
		if !ok || e.ExceptionDetails == nil {
			return nil
		}
		d := e.ExceptionDetails
		return &browserv1.ConsoleMessage{
			Level: browserv1.ConsoleLevel_CONSOLE_LEVEL_ERROR, Text: clip(strings.ToValidUTF8(thrown(d), "\ufffd"), maxText), Url: d.URL, Line: int32(d.LineNumber) + 1,
			Timestamp: stamp(float64(e.Timestamp) / 1000), Source: browserv1.ConsoleSource_CONSOLE_SOURCE_EXCEPTION,
		}
	}
	e, ok := decode[runtime.EventConsoleAPICalled](m)
	if !ok {
		return nil
	}
	parts := make([]string, 0, len(e.Args))
	for _, a := range e.Args {
		parts = append(parts, spoken(a))
	}
	msg := &browserv1.ConsoleMessage{
		Level: levelOf(e.Type), Text: clip(strings.ToValidUTF8(strings.Join(parts, " "), "\ufffd"), maxText), Timestamp: stamp(float64(e.Timestamp) / 1000),
		Source: browserv1.ConsoleSource_CONSOLE_SOURCE_CONSOLE,
	}
	if e.StackTrace != nil && len(e.StackTrace.CallFrames) > 0 {
		f := e.StackTrace.CallFrames[0]
		msg.Url, msg.Line = f.URL, int32(f.LineNumber)+1
	}
	return msg
}

// clip cuts a text to at most n bytes, between runes.
func clip(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n]
}

// spoken is an argument of a console call as a console shows it.
func spoken(a *runtime.RemoteObject) string {
	switch {
	case a.UnserializableValue != "":
		return string(a.UnserializableValue)
	case a.Type == runtime.RemoteObjectTypeUndefined:
		return "undefined"
	case a.Type == runtime.RemoteObjectTypeString:
		var s string
		if json.Unmarshal(a.Value, &s) == nil {
			return s
		}
	case a.Preview != nil && a.Subtype != runtime.RemoteObjectSubtypeError:
		return preview(a.Preview)
	case a.Description != "":
		return a.Description
	}
	return string(a.Value)
}

// preview is a short form of an object.
func preview(o *runtime.ObjectPreview) string {
	parts := make([]string, 0, len(o.Properties))
	list := o.Subtype == runtime.ObjectPreviewSubtypeArray
	for _, f := range o.Properties {
		value := f.Value
		if f.Type == runtime.PropertyPreviewTypeString {
			value = strconv.Quote(value)
		}
		if !list {
			value = f.Name + ": " + value
		}
		parts = append(parts, value)
	}
	if o.Overflow {
		parts = append(parts, "…")
	}
	if list {
		return "[" + strings.Join(parts, ", ") + "]"
	}
	return "{" + strings.Join(parts, ", ") + "}"
}

func levelOf(t runtime.ConsoleAPICalledType) browserv1.ConsoleLevel {
	switch t {
	case runtime.ConsoleAPICalledTypeDebug:
		return browserv1.ConsoleLevel_CONSOLE_LEVEL_DEBUG
	case runtime.ConsoleAPICalledTypeWarning:
		return browserv1.ConsoleLevel_CONSOLE_LEVEL_WARN
	case runtime.ConsoleAPICalledTypeError, runtime.ConsoleAPICalledTypeAssert:
		return browserv1.ConsoleLevel_CONSOLE_LEVEL_ERROR
	default:
		return browserv1.ConsoleLevel_CONSOLE_LEVEL_INFO
	}
}

// listMessages is console.list.
func (p *Provider) listMessages(_ context.Context, r *browserv1.ListMessagesRequest) (*browserv1.ListMessagesResponse, error) {
	_, pg, err := p.find(r.GetSessionId(), r.GetPageId())
	if err != nil {
		return nil, err
	}
	pg.b.mu.Lock()
	defer pg.b.mu.Unlock()
	resp := &browserv1.ListMessagesResponse{}
	for _, m := range pg.console.list {
		switch {
		case len(r.GetLevels()) > 0 && !slices.Contains(r.GetLevels(), m.GetLevel()),
			r.Contains != nil && !strings.Contains(m.GetText(), r.GetContains()),
			r.Since != nil && m.GetTimestamp().AsTime().Before(r.GetSince().AsTime()):
			continue
		}
		resp.Messages = append(resp.Messages, m)
	}
	if n := int(r.GetLimit()); n > 0 && len(resp.Messages) > n {
		resp.Messages = resp.Messages[len(resp.Messages)-n:]
	}
	return resp, nil
}
