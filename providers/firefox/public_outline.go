package firefox

import (
	"fmt"
	"strings"

	"golang.org/x/net/html"

	"github.com/droverhq/drover/proto/fault"
)

// clue is an element as the page's source tells of it. Two that are equal are taken for the same.
type clue struct {
	selector string // means this one element
	role     string
	name     string
	acts     bool
	disabled bool
}

// outline is what a page's source tells.
type outline struct {
	title, url, source string
	clues              []clue
}

var outlineRoles = map[string]string{
	"a": "link", "button": "button", "select": "combobox", "textarea": "textbox", "h1": "heading", "h2": "heading", "h3": "heading",
	"h4": "heading", "h5": "heading", "h6": "heading", "img": "img", "summary": "button", "nav": "navigation", "main": "main",
}

var inputRoles = map[string]string{
	"checkbox": "checkbox", "radio": "radio", "button": "button", "submit": "button", "reset": "button", "image": "button", "range": "slider",
	"number": "spinbutton", "search": "searchbox", "hidden": "",
}

// readOutline reads a page's source.
func readOutline(source string) (*outline, error) {
	doc, err := html.Parse(strings.NewReader(source))
	if err != nil {
		return nil, fault.New(fault.InternalError, "the page's source cannot be read").Cause(err)
	}
	o := &outline{}
	labels := map[string]string{}
	each(doc, func(n *html.Node) {
		if n.Data == "label" && attr(n, "for") != "" {
			labels[attr(n, "for")] = words(n)
		}
	})
	each(doc, func(n *html.Node) {
		role := attr(n, "role")
		if role == "" {
			role = outlineRoles[n.Data]
			if n.Data == "input" {
				role = "textbox"
				if r, ok := inputRoles[strings.ToLower(attr(n, "type"))]; ok {
					role = r
				}
			}
			if n.Data == "a" && attr(n, "href") == "" {
				role = ""
			}
		}
		if role == "" {
			return
		}
		acts := n.Data == "a" || n.Data == "button" || n.Data == "input" || n.Data == "select" || n.Data == "textarea" || n.Data == "summary" ||
			role == "button" || role == "link"
		o.clues = append(o.clues, clue{selector: path(n), role: role, name: nameOf(n, labels), acts: acts, disabled: has(n, "disabled")})
	})
	return o, nil
}

// each calls fn for the elements of a document in order; what is no part of the page's body is passed over.
func each(n *html.Node, fn func(*html.Node)) {
	if n.Type == html.ElementNode {
		switch n.Data {
		case "script", "style", "template", "head", "noscript":
			return
		}
		fn(n)
	}
	for c := n.FirstChild; c != nil; c = c.NextSibling {
		each(c, fn)
	}
}

func attr(n *html.Node, name string) string {
	for _, a := range n.Attr {
		if a.Key == name {
			return a.Val
		}
	}
	return ""
}

func has(n *html.Node, name string) bool {
	for _, a := range n.Attr {
		if a.Key == name {
			return true
		}
	}
	return false
}

// words is the text in an element.
func words(n *html.Node) string {
	var b strings.Builder
	var walk func(*html.Node)
	walk = func(n *html.Node) {
		if n.Type == html.TextNode {
			b.WriteString(n.Data + " ")
		}
		if n.Data == "script" || n.Data == "style" {
			return
		}
		for c := n.FirstChild; c != nil; c = c.NextSibling {
			walk(c)
		}
	}
	walk(n)
	return clipText(strings.Join(strings.Fields(b.String()), " "), 200)
}

// nameOf is what an element is called, as far as the source tells.
func nameOf(n *html.Node, labels map[string]string) string {
	if v := attr(n, "aria-label"); v != "" {
		return v
	}
	switch n.Data {
	case "input", "select", "textarea":
		if v := labels[attr(n, "id")]; v != "" && attr(n, "id") != "" {
			return v
		}
		for up := n.Parent; up != nil; up = up.Parent {
			if up.Data == "label" {
				return words(up)
			}
		}
		if t := strings.ToLower(attr(n, "type")); t == "submit" || t == "button" || t == "reset" {
			return attr(n, "value")
		}
		if v := attr(n, "placeholder"); v != "" {
			return v
		}
		return attr(n, "title")
	case "img":
		return attr(n, "alt")
	}
	if v := words(n); v != "" {
		return v
	}
	return attr(n, "title")
}

// path is a selector that means one element: its place among its siblings, all the way down.
func path(n *html.Node) string {
	var parts []string
	for ; n != nil && n.Type == html.ElementNode; n = n.Parent {
		place := 1
		for s := n.PrevSibling; s != nil; s = s.PrevSibling {
			if s.Type == html.ElementNode && s.Data == n.Data {
				place++
			}
		}
		parts = append([]string{fmt.Sprintf("%s:nth-of-type(%d)", n.Data, place)}, parts...)
	}
	return strings.Join(parts, " > ")
}

// byText finds what a text means among the things that can be acted on: the one called so, else the one whose name holds it.
func (o *outline) byText(text string) (clue, error) {
	want := strings.ToLower(strings.TrimSpace(text))
	var exact, near []clue
	for _, c := range o.clues {
		name := strings.ToLower(c.name)
		switch {
		case c.acts && name == want:
			exact = append(exact, c)
		case c.acts && strings.Contains(name, want):
			near = append(near, c)
		}
	}
	if len(exact) == 0 {
		exact = near
	}
	switch len(exact) {
	case 0:
		return clue{}, fault.New(fault.ElementNotFound, "nothing in the page is called so").Field("text_query")
	case 1:
		return exact[0], nil
	}
	return clue{}, fault.New(fault.InvalidRequest, "%d things in the page are called so", len(exact)).Reason("ambiguous_target").Field("text_query")
}
