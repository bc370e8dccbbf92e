package main

import (
	"encoding/json"
	"io"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"

	"github.com/droverhq/drover/proto/catalog"
	"github.com/droverhq/drover/proto/fault"
	"github.com/droverhq/drover/proto/wire"
)

func newRoot() *cobra.Command {
	a := &app{in: strings.NewReader(""), out: io.Discard, err: io.Discard}
	return a.root(nil)
}

// Guards that the commands are derived whole: every method with words has its command, and every field of its request can
// be said, by an argument, a flag, or a flag that all commands take.
func TestEveryMethodIsACommand(t *testing.T) {
	root := newRoot()
	for _, m := range catalog.All() {
		if m.Spec.GetCli() == "" {
			continue
		}
		path, args := splitWords(m.Spec.GetCli())
		cmd, rest, err := root.Find(path)
		if err != nil || len(rest) > 0 || cmd.RunE == nil {
			t.Errorf("%s: there is no command %q: %v", m.Name, strings.Join(path, " "), err)
			continue
		}
		if cmd.Short == "" || !strings.HasPrefix(cmd.Long, m.Doc) {
			t.Errorf("%s: its help is %q", m.Name, cmd.Long)
		}
		said := map[string]bool{"session_id": true, "timeout_ms": true, "provider_id": true, "browser_preference": true, "client_session_id": true}
		for _, w := range args {
			said[strings.ToLower(strings.Trim(w, "[]"))] = true
		}
		fds := m.Request.Descriptor().Fields()
		for i := range fds.Len() {
			fd := fds.Get(i)
			name := strings.ReplaceAll(string(fd.Name()), "_", "-")
			switch {
			case said[string(fd.Name())]:
			case wire.SpecOf(fd).GetInline():
				for _, flag := range []string{"selector", "text", "xy", "frame"} {
					if cmd.Flags().Lookup(flag) == nil {
						t.Errorf("%s: a target needs --%s", m.Name, flag)
					}
				}
			case cmd.Flags().Lookup(name) == nil:
				t.Errorf("%s: nothing says %s", m.Name, fd.Name())
			case !fd.IsMap() && cmd.Flags().Lookup(name).Usage == "":
				t.Errorf("%s: --%s has no help", m.Name, name)
			}
		}
	}
}

// Guards how words on the command line become params.
func TestParams(t *testing.T) {
	for _, c := range []struct{ line, want string }{
		{`click @d1e4`, `{"element_ref":"d1e4"}`},
		{`click --xy 10,20.5 --modifiers shift --modifiers alt --force`, `{"position":{"x":10,"y":20.5},"modifiers":["shift","alt"],"force":true}`},
		{`click --text Save --frame @d1e2 --button right`, `{"text_query":"Save","frame_ref":"d1e2","button":"right"}`},
		{`type @d1e4 hello --submit`, `{"element_ref":"d1e4","text":"hello","submit":true}`},
		{`type --text Name hello`, `{"text_query":"Name","text":"hello"}`},
		{`type hello`, `{"text":"hello"}`},
		{`drag @d1e4 d1e5`, `{"from":{"element_ref":"d1e4"},"to":{"element_ref":"d1e5"}}`},
		{`drag @d1e4 --to.text Basket`, `{"from":{"element_ref":"d1e4"},"to":{"text_query":"Basket"}}`},
		{`drag --from.text Apple @d1e5`, `{"from":{"text_query":"Apple"},"to":{"element_ref":"d1e5"}}`},
		{`open about:blank --new-page --wait-until networkidle --timeout 1500ms`, `{"url":"about:blank","new_page":true,"wait_until":"networkidle","timeout_ms":1500}`},
		{`scroll --dy -300`, `{"dy":-300}`},
		{`snapshot --max-nodes 0 --include-text=false --root-ref @d1e1`, `{"max_nodes":0,"include_text":false,"root_ref":"d1e1"}`},
		{`screenshot shot.png --clip.x 1 --clip.y 2 --clip.width 3 --clip.height 4`, `{"clip":{"x":1,"y":2,"width":3,"height":4}}`},
		{`screenshot --element-ref @d1e4`, `{"element_ref":"d1e4"}`},
		{`eval 1+1 --args 3 --args words --args {"a":[1]}`, `{"expression":"1+1","args":[3,"words",{"a":[1]}]}`},
		{`storage set local --items a=1 --items b=2`, `{"area":"local","items":{"a":"1","b":"2"}}`},
		{`cookie set --cookies [{"name":"a","value":"b"}]`, `{"cookies":[{"name":"a","value":"b"}]}`},
		{`tab activate t3`, `{"tab_id":"t3"}`},
		{`tab activate --page-id p3`, `{"page_id":"p3"}`},
		{`tab new`, `{}`},
		{`dialog respond accept words`, `{"action":"accept","text":"words"}`},
		{`upload --selector input /a /b`, `{"selector":"input","paths":["/a","/b"]}`},
		{`upload @d1e4 /a --json`, `{"element_ref":"d1e4","paths":["/a"]}`},
		{`provider describe cdp`, `{"provider_id":"cdp"}`},
		{`provider status --provider cdp`, `{"provider_id":"cdp"}`},
		{`session ensure blue --browser firefox --viewport.width 800 --viewport.height 600`, `{"client_session_id":"blue","browser_preference":"firefox","viewport":{"width":800,"height":600}}`},
		{`session ensure --session red --metadata {"a":1}`, `{"client_session_id":"red","metadata":{"a":1}}`},
		{`provider command cdp.send {"method":"Page.enable"}`, `{"provider_method":"cdp.send","params":{"method":"Page.enable"}}`},
	} {
		t.Run(c.line, func(t *testing.T) {
			params, err := paramsOf(c.line)
			if err != nil {
				t.Fatal(err)
			}
			var want map[string]any
			if err := json.Unmarshal([]byte(c.want), &want); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, params); diff != "" {
				t.Error(diff)
			}
		})
	}
	for line, word := range map[string]string{
		`click --xy 10`: "xy", `click @d1e4 --text Save`: "@d1e4", `click --force=maybe`: "force", `open`: "URL", `open a b`: `"b"`, `wait --timeout 0.1us --text-present a`: "--timeout",
		`screenshot --clip nonsense`: "clip", `storage set local --items a`: "items", `drag --from.text a b c`: `"c"`,
		`screenshot --clip {"x":1} --clip.x.y 2`: "clip.x.y",
	} {
		if _, err := paramsOf(line); err == nil || fault.CodeOf(asUsage(err)) != fault.InvalidRequest || !strings.Contains(err.Error(), word) {
			t.Errorf("%s: %v", line, err)
		}
	}
}

// paramsOf gives the params of a command line without running it.
func paramsOf(line string) (map[string]any, error) {
	a := &app{in: strings.NewReader(""), out: io.Discard, err: io.Discard}
	root := a.root(nil)
	var got map[string]any
	a.parsed = func(params map[string]any) error {
		data, err := json.Marshal(params)
		if err == nil {
			err = json.Unmarshal(data, &got)
		}
		return err
	}
	root.SetArgs(strings.Fields(line))
	root.SetOut(io.Discard)
	root.SetErr(io.Discard)
	err := root.Execute()
	return got, err
}
