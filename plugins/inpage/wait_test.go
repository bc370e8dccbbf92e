package inpage

import (
	"context"
	"encoding/json"
	"regexp"
	"strconv"
	"testing"
	"time"

	browserv1 "github.com/droverhq/drover/proto/browser/v1"
)

// patient is a page that is never as it is awaited, and notes how long each document is told to wait by itself.
type patient struct {
	asked  []time.Duration
	enough func()
}

func (p *patient) MainFrame(context.Context) (FrameID, error) { return "main", nil }

func (p *patient) ChildFrame(context.Context, FrameID, string) (FrameID, error) {
	return "", ErrDocumentGone
}

func (p *patient) Eval(ctx context.Context, _ FrameID, expression string) (string, error) {
	if ctx.Err() != nil {
		return "", context.Cause(ctx)
	}
	m := regexp.MustCompile(`"ms":(\d+)`).FindStringSubmatch(expression)
	if m == nil {
		return "", ErrDocumentGone
	}
	ms, err := strconv.Atoi(m[1])
	if err != nil {
		return "", err
	}
	if p.asked = append(p.asked, time.Duration(ms)*time.Millisecond); len(p.asked) == 3 {
		p.enough()
	}
	data, err := json.Marshal(map[string]any{"doc": 1, "value": map[string]any{"met": []string{}, "url": "http://a.test/", "frames": []string{}}})
	return string(data), err
}

// Guards the page after a wait was cancelled: nobody can call its script back, so no document is told to wait long.
func TestNoDocumentWaitsLong(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
	defer cancel()
	p := &patient{enough: cancel}
	words := "never"
	if w, err := NewSession().NewPage(p, nil).Wait(ctx, &browserv1.WaitRequest{TextPresent: &words}, nil); err == nil || w.Satisfied {
		t.Errorf("the wait gave %v, %v", w, err)
	}
	for _, d := range p.asked {
		if d > waitSlice {
			t.Errorf("a document waits for %s", d)
		}
	}
	if len(p.asked) < 3 {
		t.Errorf("it was asked %d times", len(p.asked))
	}
}
