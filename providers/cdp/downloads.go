package cdp

import (
	"context"
	"path/filepath"
	"strconv"
	"strings"

	browserdomain "github.com/chromedp/cdproto/browser"

	"github.com/droverhq/drover/plugins/shelf"
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
		dir, err := s.files.Folder()
		if err != nil {
			return err
		}
		params.Behavior, params.DownloadPath = browserdomain.SetDownloadBehaviorBehaviorAllowAndName, dir
	}
	_, err := ask(ctx, s.b, browserdomain.SetDownloadBehavior, params)
	return err
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
		DownloadId: "d" + strconv.Itoa(len(s.downloads)+1), Url: e.URL, SuggestedFilename: shelf.SafeName(e.SuggestedFilename),
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

// keep gives a finished download its suggested name, beside those that are there, and a ref. What a person's own browser
// saved stays where it is.
func (s *session) keep(d *download, e *browserdomain.EventDownloadProgress) error {
	path := e.FilePath
	dir, err := s.files.Folder()
	if err != nil {
		return err
	}
	if path == "" || filepath.Dir(path) == dir {
		if path, err = s.files.Take(filepath.Join(dir, e.GUID), d.told.GetSuggestedFilename()); err != nil {
			return err
		}
	}
	d.told.Path = path
	d.told.ArtifactRef = s.files.Add(path, "")
	return nil
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
