package bidi

import (
	"context"
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"google.golang.org/protobuf/types/known/timestamppb"

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

// onLog notes a console message or an uncaught exception.
func (b *browser) onLog(e *logEvent) {
	p := b.pageOf(e.Source.Context)
	if p == nil || e.Type != "console" && e.Type != "javascript" {
		return
	}
	msg := e.message()
	b.mu.Lock()
	p.console.list = append(p.console.list, msg)
	if over := len(p.console.list) - maxMessages; over > 0 {
		p.console.list = slices.Delete(p.console.list, 0, over)
	}
	b.mu.Unlock()
	p.s.emit("console.message", p, map[string]any{
		"level": word(msg.GetLevel().String(), "CONSOLE_LEVEL_"), "text": msg.GetText(), "url": msg.GetUrl(), "line": msg.GetLine(),
		"source": word(msg.GetSource().String(), "CONSOLE_SOURCE_"),
	})
}

func (e *logEvent) message() *browserv1.ConsoleMessage {
	msg := &browserv1.ConsoleMessage{
		Level: levelOf(e.Level), Timestamp: timestamppb.New(e.Timestamp.time()), Source: browserv1.ConsoleSource_CONSOLE_SOURCE_CONSOLE,
	}
	text := ""
	if e.Text != nil {
		text = *e.Text
	}
	if e.Type == "javascript" && e.StackTrace != nil { // Firefox says so of style sheets and refused requests too.
		msg.Level, msg.Source = browserv1.ConsoleLevel_CONSOLE_LEVEL_ERROR, browserv1.ConsoleSource_CONSOLE_SOURCE_EXCEPTION
	} else if len(e.Args) > 0 {
		parts := make([]string, len(e.Args))
		for i, a := range e.Args {
			parts[i] = a.spoken(0)
		}
		text = strings.Join(parts, " ")
	}
	msg.Text = clipText(strings.ToValidUTF8(text, "\ufffd"), maxText)
	if e.StackTrace != nil && len(e.StackTrace.CallFrames) > 0 {
		f := e.StackTrace.CallFrames[0]
		msg.Url, msg.Line = f.URL, int32(f.Line)+1
	}
	return msg
}

// spoken is a value as a console shows it.
func (v remoteValue) spoken(level int) string {
	switch v.Type {
	case "array", "set", "htmlcollection", "nodelist":
		var list []remoteValue
		if level > 1 || json.Unmarshal(v.Value, &list) != nil {
			return "[…]"
		}
		parts := make([]string, len(list))
		for i, e := range list {
			parts[i] = e.quoted(level + 1)
		}
		return "[" + strings.Join(parts, ", ") + "]"
	case "object", "map":
		var pairs [][2]json.RawMessage
		if level > 1 || json.Unmarshal(v.Value, &pairs) != nil {
			return "{…}"
		}
		parts := make([]string, 0, len(pairs))
		for _, pair := range pairs {
			var value remoteValue
			if json.Unmarshal(pair[1], &value) != nil {
				continue
			}
			parts = append(parts, keyText(pair[0])+": "+value.quoted(level+1))
		}
		return "{" + strings.Join(parts, ", ") + "}"
	case "date", "regexp":
		var s string
		if json.Unmarshal(v.Value, &s) == nil {
			return s
		}
		var r struct{ Pattern, Flags string }
		if json.Unmarshal(v.Value, &r) == nil {
			return "/" + r.Pattern + "/" + r.Flags
		}
	case "bigint":
		return v.plain() + "n"
	}
	return v.plain()
}

// quoted is spoken, with strings in quotes.
func (v remoteValue) quoted(level int) string {
	if s, ok := v.text(); ok {
		return strconv.Quote(s)
	}
	return v.spoken(level)
}

// keyText is the key of an object, which is text, or of a map, which is any value.
func keyText(raw json.RawMessage) string {
	var s string
	if json.Unmarshal(raw, &s) == nil {
		return s
	}
	var v remoteValue
	if json.Unmarshal(raw, &v) == nil {
		return v.quoted(2)
	}
	return "?"
}

// clipText cuts a text to at most n bytes, between runes.
func clipText(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n]
}

func levelOf(level string) browserv1.ConsoleLevel {
	switch level {
	case "debug":
		return browserv1.ConsoleLevel_CONSOLE_LEVEL_DEBUG
	case "warn":
		return browserv1.ConsoleLevel_CONSOLE_LEVEL_WARN
	case "error":
		return browserv1.ConsoleLevel_CONSOLE_LEVEL_ERROR
	}
	return browserv1.ConsoleLevel_CONSOLE_LEVEL_INFO
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
