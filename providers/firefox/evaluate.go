package firefox

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"mime"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/droverhq/drover/plugins/inpage"
	"github.com/droverhq/drover/proto/fault"
)

var (
	_ inpage.Evaluator  = (*page)(nil)
	_ inpage.Caller     = (*page)(nil)
	_ inpage.FileSetter = (*page)(nil)
)

// topFrame is the frame id of every tab's top document.
const topFrame = "0"

// MainFrame gives the frame of the top document.
func (p *page) MainFrame(context.Context) (inpage.FrameID, error) { return topFrame, nil }

// Eval evaluates nothing: the policy of extensions forbids it, and Call is there instead.
func (p *page) Eval(context.Context, inpage.FrameID, string) (string, error) {
	return "", errors.New("an add-on evaluates no text")
}

// reply is what a function in a document gave.
type reply[T any] struct {
	Document string `json:"document"`
	Value    T      `json:"value"`
}

// inDocument asks something of a frame's document. After input went out, the document that was there then is asked: one that
// took its place counts as gone, once.
func inDocument[T any](ctx context.Context, p *page, id inpage.FrameID, method string, params map[string]any) (T, error) {
	var none T
	n, err := strconv.ParseInt(string(id), 10, 64)
	if err != nil {
		return none, inpage.ErrDocumentGone
	}
	params["frame"] = n
	met := p.metBefore(ctx, n)
	if met != "" {
		params["document"] = met
	}
	var out reply[T]
	err = p.request(ctx, method, params, &out)
	for begun := time.Now(); refused(err, "privileged") && met == "" && p.between() && time.Since(begun) < betweenTime; {
		// While a document is made in another process, Firefox shows an empty one that is nobody's.
		if err := p.turn(ctx); err != nil {
			return none, err
		}
		err = p.request(ctx, method, params, &out)
	}
	if refused(err, "document_gone") || met != "" && refused(err, "privileged") {
		p.forgetMet(ctx, n)
		return none, inpage.ErrDocumentGone
	}
	if refused(err, "privileged") {
		return none, errPrivileged().Cause(err)
	}
	if err != nil {
		return none, err
	}
	p.b.mu.Lock()
	p.docs[n] = out.Document
	p.b.mu.Unlock()
	return out.Value, nil
}

// betweenTime is how long a tab may show no document of its own on the way to an address.
const betweenTime = 5 * time.Second

// between says whether the page is, or is on the way to, a document that an add-on may enter.
func (p *page) between() bool {
	p.b.mu.Lock()
	defer p.b.mu.Unlock()
	return p.movingLocked() || !p.loaded
}

// turn waits a moment for the page to go on.
func (p *page) turn(ctx context.Context) error {
	timer := time.NewTimer(30 * time.Millisecond)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// Call asks the engine in a frame.
func (p *page) Call(ctx context.Context, id inpage.FrameID, version, op string, args json.RawMessage, doc int) (string, error) {
	return inDocument[string](ctx, p, id, "doc.call", map[string]any{"version": version, "op": op, "args": args, "doc": doc})
}

// hand calls one of the functions that the add-on puts beside the engine.
func hand[T any](ctx context.Context, p *page, id inpage.FrameID, name string, args ...any) (T, error) {
	if args == nil {
		args = []any{}
	}
	return inDocument[T](ctx, p, id, "doc.hand", map[string]any{"name": name, "args": args})
}

// ChildFrame gives the frame that an element shows.
func (p *page) ChildFrame(ctx context.Context, parent inpage.FrameID, element string) (inpage.FrameID, error) {
	ref, ok := inpage.ElementRef(element)
	if !ok {
		return "", inpage.ErrDocumentGone
	}
	id, err := hand[*int64](ctx, p, parent, "child", ref)
	if err != nil {
		return "", err
	}
	if id == nil {
		return "", inpage.ErrDocumentGone
	}
	return frameID(*id), nil
}

func frameID(n int64) inpage.FrameID { return inpage.FrameID(strconv.FormatInt(n, 10)) }

// upload is a file on its way into a page.
type upload struct {
	Name     string `json:"name"`
	Type     string `json:"type"`
	Data     string `json:"data"` // base64
	Modified int64  `json:"modified"`
}

// maxUpload is how many bytes all files of one call may have together.
const maxUpload = 128 << 20

// SetFiles puts files into a file input. They are read here, for a page cannot be given a path.
func (p *page) SetFiles(ctx context.Context, id inpage.FrameID, element string, paths []string) error {
	ref, ok := inpage.ElementRef(element)
	if !ok {
		return inpage.ErrDocumentGone
	}
	var list []upload
	total := int64(0)
	for _, path := range paths {
		info, err := os.Stat(path)
		if err != nil {
			return fault.New(fault.InvalidRequest, "the file cannot be read: %v", err).Field("paths").Cause(err)
		}
		if total += info.Size(); total > maxUpload {
			return fault.New(fault.InvalidRequest, "the files have more than %d MiB together", maxUpload>>20).Reason("payload_too_large").Field("paths")
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return fault.New(fault.InvalidRequest, "the file cannot be read: %v", err).Field("paths").Cause(err)
		}
		list = append(list, upload{
			Name: filepath.Base(path), Type: mime.TypeByExtension(filepath.Ext(path)), Data: base64.StdEncoding.EncodeToString(data),
			Modified: info.ModTime().UnixMilli(),
		})
	}
	n, err := hand[*int](ctx, p, id, "files", ref, list)
	if err == nil && n == nil {
		err = inpage.ErrDocumentGone
	}
	return err
}

// acting is what a call that acts remembers: the documents that were there when its input went out.
type acting struct{ docs map[int64]string }

type actingKey struct{}

// remember notes the documents of the page before input goes out.
func (p *page) remember(ctx context.Context) {
	a, ok := ctx.Value(actingKey{}).(*acting)
	if !ok {
		return
	}
	p.b.mu.Lock()
	defer p.b.mu.Unlock()
	a.docs = map[int64]string{}
	for id, doc := range p.docs {
		a.docs[id] = doc
	}
}

// metBefore gives the document that the call's input met in a frame; "" when none went out.
func (p *page) metBefore(ctx context.Context, frame int64) string {
	a, ok := ctx.Value(actingKey{}).(*acting)
	if !ok {
		return ""
	}
	p.b.mu.Lock()
	defer p.b.mu.Unlock()
	return a.docs[frame]
}

func (p *page) forgetMet(ctx context.Context, frame int64) {
	p.b.mu.Lock()
	defer p.b.mu.Unlock()
	if a, ok := ctx.Value(actingKey{}).(*acting); ok {
		delete(a.docs, frame)
	}
	delete(p.docs, frame)
}
