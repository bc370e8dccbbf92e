package bidi

import (
	"context"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"google.golang.org/protobuf/proto"

	"github.com/droverhq/drover/plugins/shelf"
	browserv1 "github.com/droverhq/drover/proto/browser/v1"
	"github.com/droverhq/drover/proto/fault"
)

// download is one download of a session, guarded by its browser's mu.
type download struct {
	key  string // how the browser names it
	page *page
	told *browserv1.Download
}

// key is how an event names its download: by an id of its own, or by the navigation that became it.
func (e *navigationEvent) key() string {
	if e.Download != "" {
		return e.Download
	}
	return e.Context + " " + e.Navigation + " " + e.URL
}

// onDownload notes a download that begins.
func (b *browser) onDownload(e *navigationEvent) {
	b.mu.Lock()
	f := b.frames[e.Context]
	if f == nil || f.page.s.closed {
		b.mu.Unlock()
		return
	}
	pg, s := f.page, f.page.s
	d := &download{key: e.key(), page: pg, told: &browserv1.Download{
		DownloadId: "d" + strconv.Itoa(len(s.downloads)+1), Url: e.URL, SuggestedFilename: shelf.SafeName(e.Suggested),
		State: browserv1.DownloadState_DOWNLOAD_STATE_IN_PROGRESS,
	}}
	s.downloads = append(s.downloads, d)
	if f.pending == e.Navigation {
		f.pending, f.between = "", false
	}
	s.notifyLocked()
	pg.notifyLocked()
	b.mu.Unlock()
	s.emit("download.started", pg, map[string]any{"download_id": d.told.GetDownloadId(), "url": e.URL, "suggested_filename": d.told.GetSuggestedFilename()})
}

// onDownloadEnd gives the file of a finished download a safe name and a ref.
func (b *browser) onDownloadEnd(e *navigationEvent) {
	b.mu.Lock()
	var s *session
	var d *download
	for other := range b.sessions {
		for _, have := range other.downloads {
			if have.key == e.key() && have.told.GetState() == browserv1.DownloadState_DOWNLOAD_STATE_IN_PROGRESS {
				s, d = other, have
			}
		}
	}
	if d == nil {
		b.mu.Unlock()
		return
	}
	d.told.State = browserv1.DownloadState_DOWNLOAD_STATE_FAILED
	if e.Status == "complete" && e.Path != "" {
		if err := s.keep(d, e.Path); err != nil {
			s.p.srv.Logger().Warn("a download could not be kept", "error", err)
		}
	}
	state := d.told.GetState()
	s.notifyLocked()
	b.mu.Unlock()
	s.emit("download.finished", d.page, map[string]any{"download_id": d.told.GetDownloadId(), "state": word(state.String(), "DOWNLOAD_STATE_")})
}

// incoming gives the folder that the browser writes downloads into. Finished ones leave it, so that the browser gives the
// next one of the same name its own name.
func (s *session) incoming() (string, error) {
	dir, err := s.files.Folder()
	if err != nil {
		return "", err
	}
	dir = filepath.Join(dir, ".incoming")
	return dir, os.MkdirAll(dir, 0o700)
}

// keep gives a finished file its name. In a person's own browser it stays where it is.
func (s *session) keep(d *download, path string) error {
	dir, err := s.incoming()
	if err != nil {
		return err
	}
	if filepath.Dir(path) == dir {
		if path, err = s.files.Take(path, d.told.GetSuggestedFilename()); err != nil {
			return err
		}
	}
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	d.told.Path, d.told.ArtifactRef = path, s.files.Add(path, "")
	d.told.ReceivedBytes, d.told.TotalBytes = info.Size(), info.Size()
	d.told.State = browserv1.DownloadState_DOWNLOAD_STATE_COMPLETE
	return nil
}

// word gives the protocol's word of an enum's name.
func word(name, prefix string) string { return strings.ToLower(strings.TrimPrefix(name, prefix)) }

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
		resp.Downloads = append(resp.Downloads, proto.CloneOf(d.told))
	}
	return resp, nil
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
		done = append(done, proto.CloneOf(d.told))
	}
	return done, known
}

// getArtifact is artifact.get.
func (p *Provider) getArtifact(_ context.Context, r *browserv1.GetArtifactRequest) (*browserv1.GetArtifactResponse, error) {
	s, err := p.session(r.GetSessionId())
	if err != nil {
		return nil, err
	}
	return s.files.Get(r)
}

// setFiles is upload.set_files.
func (p *Provider) setFiles(ctx context.Context, r *browserv1.SetFilesRequest) (*browserv1.SetFilesResponse, error) {
	_, host := p.settings()
	paths := make([]string, 0, len(r.GetPaths()))
	for _, path := range r.GetPaths() {
		real, err := shelf.Allowed(path, host.GetUploadDirs())
		if err != nil {
			return nil, err
		}
		paths = append(paths, real)
	}
	pg, e, err := p.act(ctx, r.GetSessionId(), r.GetPageId(), func(ctx context.Context, pg *page) error {
		_, err := pg.driver.SetFiles(ctx, r.GetTarget(), paths)
		return err
	})
	if err != nil {
		return nil, err
	}
	return &browserv1.SetFilesResponse{PageId: pg.id, Files: paths, Dialog: e.dialog}, nil
}
