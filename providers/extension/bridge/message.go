package bridge

import "encoding/json"

// Command is what the backend sends.
type Command struct {
	Type string `json:"type,omitempty"` // "command" on a WebSocket
	ID   string `json:"id"`
	Tool string `json:"tool"`
	Args any    `json:"args,omitempty"`
}

// Content is a block of a result: a text, or a picture in base64.
type Content struct {
	Type     string `json:"type"`
	Text     string `json:"text,omitempty"`
	Data     string `json:"data,omitempty"`
	MimeType string `json:"mimeType,omitempty"`
}

// Result is what a tool gave. Value is an addition of our extension: the result as JSON, beside the text.
type Result struct {
	Content []Content       `json:"content"`
	Value   json.RawMessage `json:"value,omitempty"`
}

// Text gives the texts of a result together.
func (r *Result) Text() string {
	out := ""
	for _, c := range r.Content {
		if c.Type == "text" {
			out += c.Text
		}
	}
	return out
}

// Picture gives the first picture of a result, in base64, and its type.
func (r *Result) Picture() (data, mime string) {
	for _, c := range r.Content {
		if c.Type == "image" {
			return c.Data, c.MimeType
		}
	}
	return "", ""
}

// Event is something that our extension tells without being asked.
type Event struct {
	Browser string          `json:"browser"`
	Name    string          `json:"event"`
	Payload json.RawMessage `json:"payload"`
}

// incoming is any message of an extension. Type is result on a WebSocket and may be absent over HTTP.
type incoming struct {
	Type      string          `json:"type"`
	CommandID any             `json:"commandId"`
	Result    *Result         `json:"result"`
	Error     *string         `json:"error"`
	Event     string          `json:"event"`
	Payload   json.RawMessage `json:"payload"`

	// Additions of our extension: Life names the life of its worker, Seq numbers its messages in it, Pending tells on hello
	// which commands it still works on or has results for.
	Life     string     `json:"life"`
	Seq      int64      `json:"seq"`
	Pending  []string   `json:"pending"`
	Messages []incoming `json:"messages"`

	Token  string `json:"token"`
	Target string `json:"target"`
}
