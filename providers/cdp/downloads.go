package cdp

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"mime"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"unicode/utf8"

	browserdomain "github.com/chromedp/cdproto/browser"

	browserv1 "github.com/droverhq/drover/proto/browser/v1"
	"github.com/droverhq/drover/proto/fault"
)

// download is one download of a session, guarded by its browser's mu.
type download struct {
	guid string
	page *page
	told *browserv1.Download
}

// watchDownloads has the browser put downloads into the session's folder, under names that no server chooses. A person's
// own browser keeps its ways; only its events are wanted.
func (s *session) watchDownloads(ctx context.Context) error {
	params := browserdomain.SetDownloadBehaviorParams{
		Behavior: browserdomain.SetDownloadBehaviorBehaviorDefault, BrowserContextID: s.context, EventsEnabled: yes(),
	}
	if !s.b.attached || s.context != "" {
		dir, err := s.folder()
		if err != nil {
			return err
		}
		params.Behavior, params.DownloadPath = browserdomain.SetDownloadBehaviorBehaviorAllowAndName, dir
	}
	_, err := ask(ctx, s.b, browserdomain.SetDownloadBehavior, params)
	return err
}

// folder gives the folder for the session's files, which goes with the session.
func (s *session) folder() (string, error) {
	s.dirOnce.Do(func() {
		s.p.mu.Lock()
		runDir := s.p.host.GetRunDir()
		s.p.mu.Unlock()
		s.dir, s.dirErr = os.MkdirTemp(runDir, profilePrefix+strconv.Itoa(os.Getpid())+"-files-")
		s.files.dir = s.dir
	})
	if s.dirErr != nil {
		return "", fmt.Errorf("making a folder for downloads: %w", s.dirErr)
	}
	return s.dir, nil
}

// onDownload notes a download that begins. It belongs to the page whose frame it came from.
func (b *browser) onDownload(e *browserdomain.EventDownloadWillBegin) {
	b.mu.Lock()
	var s *session
	var from *page
	for _, pg := range b.pages {
		if pg.frames[e.FrameID] != nil {
			s, from = pg.s, pg
		}
	}
	if s == nil && len(b.sessions) == 1 {
		for only := range b.sessions {
			s = only
		}
	}
	if s == nil || s.closed {
		b.mu.Unlock()
		return
	}
	d := &download{guid: e.GUID, page: from, told: &browserv1.Download{
		DownloadId: "d" + strconv.Itoa(len(s.downloads)+1), Url: e.URL, SuggestedFilename: safeName(e.SuggestedFilename),
		State: browserv1.DownloadState_DOWNLOAD_STATE_IN_PROGRESS,
	}}
	s.downloads = append(s.downloads, d)
	s.notifyLocked()
	b.mu.Unlock()
	s.emit("download.started", from, map[string]any{"download_id": d.told.GetDownloadId(), "url": e.URL, "suggested_filename": d.told.GetSuggestedFilename()})
}

// onProgress follows a download to its end and then gives the file its name.
func (b *browser) onProgress(e *browserdomain.EventDownloadProgress) {
	b.mu.Lock()
	var s *session
	var d *download
	for other := range b.sessions {
		for _, have := range other.downloads {
			if have.guid == e.GUID {
				s, d = other, have
			}
		}
	}
	if d == nil || d.told.GetState() != browserv1.DownloadState_DOWNLOAD_STATE_IN_PROGRESS {
		b.mu.Unlock()
		return
	}
	d.told.ReceivedBytes, d.told.TotalBytes = int64(e.ReceivedBytes), int64(e.TotalBytes)
	switch e.State {
	case browserdomain.DownloadProgressStateCompleted:
		d.told.State = browserv1.DownloadState_DOWNLOAD_STATE_COMPLETE
		if err := s.keep(d, e); err != nil {
			d.told.State = browserv1.DownloadState_DOWNLOAD_STATE_FAILED
			s.p.srv.Logger().Warn("a download could not be kept", "error", err)
		}
	case browserdomain.DownloadProgressStateCanceled:
		d.told.State = browserv1.DownloadState_DOWNLOAD_STATE_FAILED
	case browserdomain.DownloadProgressStateInProgress:
	}
	state := d.told.GetState()
	s.notifyLocked()
	b.mu.Unlock()
	if state != browserv1.DownloadState_DOWNLOAD_STATE_IN_PROGRESS {
		s.emit("download.finished", d.page, map[string]any{"download_id": d.told.GetDownloadId(), "state": strings.ToLower(strings.TrimPrefix(state.String(), "DOWNLOAD_STATE_"))})
	}
}

// keep gives a finished download its suggested name, beside those that are there, and a ref.
func (s *session) keep(d *download, e *browserdomain.EventDownloadProgress) error {
	path := e.FilePath
	if s.dir != "" && filepath.Dir(path) == s.dir || path == "" {
		named, err := nameFile(filepath.Join(s.dir, e.GUID), s.dir, d.told.GetSuggestedFilename())
		if err != nil {
			return err
		}
		path = named
	}
	kind := mime.TypeByExtension(filepath.Ext(path))
	if kind == "" {
		kind = "application/octet-stream"
	}
	d.told.Path = path
	d.told.ArtifactRef = s.files.add(path, kind)
	return nil
}

// nameFile moves a file into a folder under a name, or the name with a number when it is taken. It never overwrites.
func nameFile(from, dir, name string) (string, error) {
	ext := filepath.Ext(name)
	stem := strings.TrimSuffix(name, ext)
	for n := 0; ; n++ {
		to := filepath.Join(dir, name)
		if n > 0 {
			mark := fmt.Sprintf(" (%d)", n)
			to = filepath.Join(dir, clip(stem, maxName-len(mark)-len(ext))+mark+ext)
		}
		err := os.Link(from, to)
		switch {
		case err == nil:
			return to, os.Remove(from)
		case !errors.Is(err, fs.ErrExist) || n > 10000:
			return "", err
		}
	}
}

// maxName is how many bytes a file name may have on the usual file systems.
const maxName = 255

// safeName makes a file name of what a server suggested: no path, no control characters, not hidden, not a device of
// another system, at most 255 bytes, never empty.
func safeName(suggested string) string {
	name := strings.ToValidUTF8(suggested, "_")
	if i := strings.LastIndexAny(name, `/\`); i >= 0 {
		name = name[i+1:]
	}
	name = strings.Map(func(r rune) rune {
		if r < 0x20 || r == 0x7f || strings.ContainsRune(`<>:"|?*`, r) {
			return '_'
		}
		return r
	}, name)
	name = strings.TrimRight(strings.TrimSpace(name), ". ")
	name = strings.TrimLeft(name, ".")
	stem, _, _ := strings.Cut(strings.ToUpper(name), ".")
	switch {
	case name == "":
		return "download"
	case reserved[stem]:
		name = "_" + name
	}
	if len(name) > maxName {
		ext := filepath.Ext(name)
		if len(ext) > 32 {
			ext = ""
		}
		name = clip(strings.TrimSuffix(name, ext), maxName-len(ext)) + ext
	}
	return name
}

var reserved = map[string]bool{
	"CON": true, "PRN": true, "AUX": true, "NUL": true, "COM1": true, "COM2": true, "COM3": true, "COM4": true,
	"COM5": true, "COM6": true, "COM7": true, "COM8": true, "COM9": true, "LPT1": true, "LPT2": true, "LPT3": true,
	"LPT4": true, "LPT5": true, "LPT6": true, "LPT7": true, "LPT8": true, "LPT9": true,
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

// listDownloads is download.list.
func (p *Provider) listDownloads(_ context.Context, r *browserv1.ListDownloadsRequest) (*browserv1.ListDownloadsResponse, error) {
	s, err := p.session(r.GetSessionId())
	if err != nil {
		return nil, err
	}
	s.b.mu.Lock()
	defer s.b.mu.Unlock()
	resp := &browserv1.ListDownloadsResponse{}
	for _, d := range s.downloads {
		resp.Downloads = append(resp.Downloads, cloneDownload(d.told))
	}
	return resp, nil
}

func cloneDownload(d *browserv1.Download) *browserv1.Download {
	return &browserv1.Download{
		DownloadId: d.GetDownloadId(), Url: d.GetUrl(), SuggestedFilename: d.GetSuggestedFilename(), State: d.GetState(),
		Path: d.GetPath(), ArtifactRef: d.GetArtifactRef(), ReceivedBytes: d.GetReceivedBytes(), TotalBytes: d.GetTotalBytes(),
	}
}

// waitDownload is download.wait: it waits until the downloads that were asked for have ended.
func (p *Provider) waitDownload(ctx context.Context, r *browserv1.WaitDownloadRequest) (*browserv1.WaitDownloadResponse, error) {
	s, err := p.session(r.GetSessionId())
	if err != nil {
		return nil, err
	}
	for {
		s.b.mu.Lock()
		changed := s.changed
		done, known := s.endedLocked(r)
		closed := s.closed
		s.b.mu.Unlock()
		switch {
		case len(done) > 0:
			return &browserv1.WaitDownloadResponse{Downloads: done}, nil
		case r.DownloadId != nil && !known:
			return nil, fault.New(fault.InvalidRequest, "there is no download %s in this session", r.GetDownloadId()).Field("download_id").
				Hint("download.list tells those there are")
		case s.b.gone():
			return nil, errBrowserGone()
		case closed:
			return nil, fault.New(fault.SessionNotFound, "the session was closed")
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

// endedLocked gives what download.wait waits for, when all of it has ended. Without a field that is the latest download.
func (s *session) endedLocked(r *browserv1.WaitDownloadRequest) (done []*browserv1.Download, known bool) {
	for i, d := range s.downloads {
		switch {
		case r.DownloadId != nil && d.told.GetDownloadId() != r.GetDownloadId(),
			r.UrlContains != nil && !strings.Contains(d.told.GetUrl(), r.GetUrlContains()),
			r.DownloadId == nil && r.UrlContains == nil && i < len(s.downloads)-1:
			continue
		case d.told.GetState() == browserv1.DownloadState_DOWNLOAD_STATE_IN_PROGRESS:
			return nil, true
		}
		known = true
		done = append(done, cloneDownload(d.told))
	}
	return done, known
}
