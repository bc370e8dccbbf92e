package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/known/structpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	browserv1 "github.com/droverhq/drover/proto/browser/v1"
	"github.com/droverhq/drover/proto/wire"
)

// printJSON prints an object: indented for a person, on one line for a program.
func (a *app) printJSON(data []byte) {
	var b bytes.Buffer
	if terminal(a.out) && json.Indent(&b, data, "", "  ") == nil {
		data = b.Bytes()
	}
	fmt.Fprintf(a.out, "%s\n", data)
}

func jsonText(v any) string {
	data, err := json.Marshal(v)
	if err != nil {
		return "null"
	}
	return string(data)
}

// warn prints warnings to stderr.
func (a *app) warn(ws []*browserv1.Warning) {
	for _, w := range ws {
		fmt.Fprintf(a.err, "%s %s (%s)\n", a.paint(a.err, yellow, "warning:"), w.GetMessage(), w.GetCode())
	}
}

// printMessage prints a result for a person: its telling fields, the list it is about as a table.
func (a *app) printMessage(m proto.Message) {
	switch r := m.(type) {
	case *browserv1.SnapshotResponse:
		a.printSnapshot(r)
	case *browserv1.EvalResponse:
		a.printEval(r)
	case *browserv1.VerifyResponse:
		a.printChecks("", r.GetChecks())
	case *browserv1.StatusResponse:
		a.printStatus(r)
	case *browserv1.DescribeResponse:
		a.printDescribe(r)
	case *browserv1.SetupGuideResponse:
		a.printSteps(r)
	case *browserv1.WaitResponse:
		if !r.GetSatisfied() {
			fmt.Fprintln(a.err, "not satisfied: the conditions did not hold together in time")
		}
		a.printFields(r.ProtoReflect())
	case *browserv1.GetDialogResponse:
		if r.GetDialog() == nil {
			fmt.Fprintln(a.err, "no dialog is open")
		}
	case *browserv1.CommandResponse:
		a.printJSON(valueJSON(r.GetResult()))
	default:
		if !a.printPlace(m.ProtoReflect()) {
			a.printFields(m.ProtoReflect())
		}
	}
	a.printDialog(m.ProtoReflect())
}

// printSteps prints how to set a provider up: what is done, and what is left with its command.
func (a *app) printSteps(r *browserv1.SetupGuideResponse) {
	for _, step := range r.GetSteps() {
		mark := a.paint(a.out, yellow, "to do ")
		if step.GetDone() {
			mark = a.paint(a.out, green, "done  ")
		}
		fmt.Fprintln(a.out, mark+step.GetTitle())
		for _, more := range []string{step.GetCommand(), step.GetUrl()} {
			if more != "" && !step.GetDone() {
				fmt.Fprintln(a.out, "      "+more)
			}
		}
	}
	for _, d := range r.GetDiagnostics() {
		if d.GetLevel() != browserv1.Level_LEVEL_INFO {
			fmt.Fprintf(a.err, "%s %s (%s)\n", a.paint(a.err, yellow, "note:"), d.GetMessage(), d.GetCode())
		}
	}
}

// printPlace prints where a navigation led, on one line; false for what is no navigation.
func (a *app) printPlace(m protoreflect.Message) bool {
	fds := m.Descriptor().Fields()
	state := fds.ByName("navigation_state")
	if state == nil {
		return false
	}
	text := func(name protoreflect.Name) string { return m.Get(fds.ByName(name)).String() }
	var about []string
	if id := fds.ByName("tab_id"); id != nil {
		about = append(about, "tab "+m.Get(id).String())
	}
	if w := one(state, m.Get(state)); w != "" && w != "complete" {
		about = append(about, w)
	}
	if fd := fds.ByName("http_status"); m.Has(fd) {
		about = append(about, m.Get(fd).String())
	}
	line := text("url")
	if t := text("title"); t != "" {
		line = a.paint(a.out, bold, t) + "  " + line
	}
	if len(about) > 0 {
		line += "  (" + strings.Join(about, ", ") + ")"
	}
	fmt.Fprintln(a.out, line)
	return true
}

func valueJSON(v *structpb.Value) []byte {
	if v == nil {
		return []byte("null")
	}
	data, err := wire.Marshal(&browserv1.CommandResponse{Result: v})
	if err != nil {
		return []byte("null")
	}
	var r struct {
		Result json.RawMessage `json:"result"`
	}
	if json.Unmarshal(data, &r) != nil {
		return []byte("null")
	}
	return r.Result
}

func (a *app) printSnapshot(r *browserv1.SnapshotResponse) {
	fmt.Fprintf(a.out, "%s\n", a.paint(a.out, dim, strings.TrimSpace("# "+r.GetTitle()+"  "+r.GetUrl())))
	if r.GetOutline() != "" {
		fmt.Fprintln(a.out, strings.TrimRight(r.GetOutline(), "\n"))
	}
	if r.GetText() != "" {
		fmt.Fprintln(a.out, strings.TrimRight(r.GetText(), "\n"))
	}
	for _, key := range []string{"html", "dom"} {
		if v, ok := r.GetProviderData().GetFields()[key]; ok {
			if s, text := v.GetKind().(*structpb.Value_StringValue); text {
				fmt.Fprintln(a.out, s.StringValue)
			} else {
				a.printJSON(valueJSON(v))
			}
		}
	}
	for _, o := range r.GetProviderData().GetFields()["omitted"].GetListValue().GetValues() {
		fmt.Fprintf(a.err, "%s not read: %s\n", a.paint(a.err, yellow, "note:"), valueJSON(o))
	}
	if s := r.GetSnapshot(); s.GetTruncated() {
		fmt.Fprintf(a.err, "%s cut; the page has %d nodes (--max-nodes 0 shows all)\n", a.paint(a.err, yellow, "note:"), s.GetTotalNodes())
	}
	if r.GetScreenshotRef() != "" {
		fmt.Fprintf(a.out, "screenshot_ref: %s\n", r.GetScreenshotRef())
	}
}

func (a *app) printEval(r *browserv1.EvalResponse) {
	switch v := r.GetValue().GetKind().(type) {
	case *structpb.Value_StringValue:
		fmt.Fprintln(a.out, v.StringValue)
	default:
		if r.Unserializable != nil {
			fmt.Fprintln(a.out, r.GetUnserializable())
			return
		}
		a.printJSON(valueJSON(r.GetValue()))
	}
}

func (a *app) printDialog(m protoreflect.Message) {
	fd := m.Descriptor().Fields().ByName("dialog")
	if fd == nil || !m.Has(fd) {
		return
	}
	d, ok := m.Get(fd).Message().Interface().(*browserv1.Dialog)
	if !ok {
		return
	}
	fmt.Fprintf(a.out, "%s %s %q\n", a.paint(a.out, yellow, "dialog:"), d.GetType(), d.GetMessage())
	if m.Descriptor().Name() != "RespondDialogResponse" {
		fmt.Fprintln(a.err, "answer it with drover dialog respond accept|dismiss")
	}
}

// mark is the sign of a check's outcome.
func (a *app) mark(s browserv1.CheckStatus) string {
	switch s {
	case browserv1.CheckStatus_CHECK_STATUS_PASS:
		return a.paint(a.out, green, "✓")
	case browserv1.CheckStatus_CHECK_STATUS_WARN:
		return a.paint(a.out, yellow, "!")
	case browserv1.CheckStatus_CHECK_STATUS_FAIL:
		return a.paint(a.out, red, "✗")
	default:
		return "-"
	}
}

func (a *app) printChecks(indent string, checks []*browserv1.Check) {
	for _, c := range checks {
		fmt.Fprintf(a.out, "%s%s %-20s %s\n", indent, a.mark(c.GetStatus()), c.GetId(), c.GetMessage())
		if c.GetFix() != "" && c.GetStatus() != browserv1.CheckStatus_CHECK_STATUS_PASS {
			fmt.Fprintf(a.out, "%s  %s %s\n", indent, a.paint(a.out, cyan, "fix:"), c.GetFix())
		}
	}
}

// printStatus prints a provider's state, or the table of all of them.
func (a *app) printStatus(r *browserv1.StatusResponse) {
	if len(r.GetProviders()) > 0 {
		w := tabwriter.NewWriter(a.out, 0, 4, 2, ' ', 0)
		fmt.Fprintln(w, "PROVIDER\tAVAILABILITY\tSETUP\tSTATE\tPID\tSESSIONS\tBROWSER")
		for _, p := range r.GetProviders() {
			fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%d\t%s\n", p.GetProviderId(), wire.Word(p.GetAvailability()), wire.Word(p.GetSetupState()),
				p.GetState(), number(p.GetPid()), p.GetSessions(), p.GetRecommendedBrowser())
		}
		_ = w.Flush()
		return
	}
	a.printFields(r.ProtoReflect())
	a.printFindings(r.GetDiagnostics(), r.GetManualSteps())
}

func number(n int32) string {
	if n == 0 {
		return "-"
	}
	return fmt.Sprint(n)
}

func (a *app) printFindings(ds []*browserv1.Diagnostic, steps []string) {
	for _, d := range ds {
		fmt.Fprintf(a.out, "%s: %s (%s)\n", wire.Word(d.GetLevel()), d.GetMessage(), d.GetCode())
	}
	for i, s := range steps {
		fmt.Fprintf(a.out, "%d. %s\n", i+1, s)
	}
}

// printDescribe prints what a provider is, or the table of all of them.
func (a *app) printDescribe(r *browserv1.DescribeResponse) {
	if len(r.GetProviders()) == 0 {
		a.printFields(r.ProtoReflect())
		for _, b := range r.GetBrowsers() {
			fmt.Fprintf(a.out, "browser: %s %s (%s)\n", b.GetLabel(), b.GetVersion(), b.GetFamily())
		}
		c := r.GetCapabilities()
		fmt.Fprintf(a.out, "methods: %s\n", strings.Join(append(append([]string{}, c.GetCoreMethods()...), c.GetOptionalMethods()...), " "))
		fmt.Fprintf(a.out, "features: %s\n", strings.Join(c.GetFeatures(), " "))
		for _, m := range c.GetCustomMethods() {
			fmt.Fprintf(a.out, "custom method: %s (%s) %s\n", m.GetName(), wire.Word(m.GetStability()), m.GetDescription())
		}
		return
	}
	w := tabwriter.NewWriter(a.out, 0, 4, 2, ' ', 0)
	fmt.Fprintln(w, "PROVIDER\tVERSION\tTIER\tMETHODS\tBROWSERS")
	for _, p := range r.GetProviders() {
		var found []string
		for _, b := range p.GetBrowsers() {
			found = append(found, strings.TrimSpace(b.GetLabel()+" "+b.GetVersion()))
		}
		n := len(p.GetCapabilities().GetCoreMethods()) + len(p.GetCapabilities().GetOptionalMethods())
		fmt.Fprintf(w, "%s\t%s\t%s\t%d\t%s\n", p.GetProviderId(), p.GetProviderVersion(), wire.Word(p.GetCertificationTier()), n, strings.Join(found, ", "))
	}
	_ = w.Flush()
}

// printFields prints a message's fields a line each, leaving out what is empty, and page_id where it is not all there is;
// what holds is said by its name alone. A list of messages is a table.
func (a *app) printFields(m protoreflect.Message) {
	fds := m.Descriptor().Fields()
	for i := range fds.Len() {
		fd := fds.Get(i)
		if !m.Has(fd) {
			if fd.IsList() && fd.Kind() == protoreflect.MessageKind && fd.Name() != "warnings" && fds.Len() <= 2 {
				fmt.Fprintf(a.err, "no %s\n", strings.ReplaceAll(string(fd.Name()), "_", " "))
			}
			continue
		}
		switch {
		case fd.Name() == "warnings" || fd.Name() == "dialog" || fd.Name() == "page_id" && fds.Len() > 2:
		case fd.Kind() == protoreflect.BoolKind && !fd.IsList():
			fmt.Fprintln(a.out, strings.ReplaceAll(string(fd.Name()), "_", " "))
		case fd.IsList() && fd.Kind() == protoreflect.MessageKind:
			if fds.Len() <= 2 {
				printTable(a.out, m.Get(fd).List())
			}
		case fd.Kind() == protoreflect.MessageKind && !fd.IsMap() && !isPlain(fd.Message()):
		default:
			fmt.Fprintf(a.out, "%s: %s\n", fd.Name(), cell(fd, m.Get(fd)))
		}
	}
}

func isPlain(md protoreflect.MessageDescriptor) bool { return !ours(md) }

// printTable prints messages of one type as rows; a column that is empty in all of them is left out.
func printTable(out io.Writer, rows protoreflect.List) {
	fds := rows.Get(0).Message().Descriptor().Fields()
	var cols []protoreflect.FieldDescriptor
	for i := range fds.Len() {
		for j := range rows.Len() {
			if rows.Get(j).Message().Has(fds.Get(i)) {
				cols = append(cols, fds.Get(i))
				break
			}
		}
	}
	w := tabwriter.NewWriter(out, 0, 4, 2, ' ', 0)
	for i, fd := range cols {
		if i > 0 {
			fmt.Fprint(w, "\t")
		}
		fmt.Fprint(w, strings.ToUpper(strings.ReplaceAll(string(fd.Name()), "_", " ")))
	}
	fmt.Fprintln(w)
	for j := range rows.Len() {
		m := rows.Get(j).Message()
		for i, fd := range cols {
			if i > 0 {
				fmt.Fprint(w, "\t")
			}
			if m.Has(fd) {
				fmt.Fprint(w, strings.ReplaceAll(cell(fd, m.Get(fd)), "\n", " "))
			}
		}
		fmt.Fprintln(w)
	}
	_ = w.Flush()
}

// cell gives a field's value on one line.
func cell(fd protoreflect.FieldDescriptor, v protoreflect.Value) string {
	switch {
	case fd.IsMap():
		var parts []string
		v.Map().Range(func(k protoreflect.MapKey, v protoreflect.Value) bool {
			parts = append(parts, k.String()+"="+one(fd.MapValue(), v))
			return true
		})
		return strings.Join(parts, " ")
	case fd.IsList():
		parts := make([]string, v.List().Len())
		for i := range parts {
			parts[i] = one(fd, v.List().Get(i))
		}
		return strings.Join(parts, " ")
	default:
		return one(fd, v)
	}
}

func one(fd protoreflect.FieldDescriptor, v protoreflect.Value) string {
	switch fd.Kind() {
	case protoreflect.BoolKind:
		return map[bool]string{true: "yes", false: "no"}[v.Bool()]
	case protoreflect.EnumKind:
		vd := fd.Enum().Values().ByNumber(v.Enum())
		if i := vd.Index() - 1; i >= 0 && i < len(wire.Words(fd.Enum())) {
			return wire.Words(fd.Enum())[i]
		}
		return ""
	case protoreflect.BytesKind:
		return fmt.Sprintf("%d bytes", len(v.Bytes()))
	case protoreflect.MessageKind:
		if t, ok := v.Message().Interface().(*timestamppb.Timestamp); ok {
			return t.AsTime().Local().Format(time.DateTime)
		}
		data, err := wire.Marshal(v.Message().Interface())
		if err != nil {
			return ""
		}
		return string(data)
	default:
		return v.String()
	}
}
