package firefox

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
	number int64 // Firefox's
	told   *browserv1.Download
}

// downloadEvent is a download's beginning or change (MDN, downloads.DownloadItem).
type downloadEvent struct {
	ID       int64  `json:"id"`
	URL      string `json:"url"`
	Path     string `json:"path"`
	State    string `json:"state"` // in_progress, interrupted or complete
	Received int64  `json:"received"`
	Total    int64  `json:"total"`
	Mime     string `json:"mime"`
}

// onDownload notes a download. Its file stays where the person's Firefox puts downloads.
func (b *browser) onDownload(s *session, e *downloadEvent) {
	b.mu.Lock()
	var d *download
	for _, have := range s.downloads {
		if have.number == e.ID {
			d = have
		}
	}
	fresh := d == nil
	if fresh {
		d = &download{number: e.ID, told: &browserv1.Download{
			DownloadId: "d" + strconv.Itoa(len(s.downloads)+1), Url: e.URL, State: browserv1.DownloadState_DOWNLOAD_STATE_IN_PROGRESS,
		}}
		s.downloads = append(s.downloads, d)
	}
	if name := s.names[e.URL]; name != "" {
		d.told.SuggestedFilename = shelf.SafeName(name)
	} else if e.Path != "" {
		d.told.SuggestedFilename = shelf.SafeName(filepath.Base(e.Path))
	}
	d.told.ReceivedBytes, d.told.TotalBytes = max(e.Received, 0), max(e.Total, 0)
	ended := false
	if d.told.GetState() == browserv1.DownloadState_DOWNLOAD_STATE_IN_PROGRESS {
		ended = s.finishLocked(d, e)
	}
	s.notifyLocked()
	for _, pg := range s.pages {
		pg.notifyLocked()
	}
	state, id, name := d.told.GetState(), d.told.GetDownloadId(), d.told.GetSuggestedFilename()
	b.mu.Unlock()
	if fresh {
		s.emit("download.started", nil, map[string]any{"download_id": id, "url": e.URL, "suggested_filename": name})
	}
	if ended {
		s.emit("download.finished", nil, map[string]any{"download_id": id, "state": word(state.String(), "DOWNLOAD_STATE_")})
	}
}

// finishLocked says whether a download has ended, and gives the file of a whole one a ref.
func (s *session) finishLocked(d *download, e *downloadEvent) bool {
	switch e.State {
	case "interrupted":
		d.told.State = browserv1.DownloadState_DOWNLOAD_STATE_FAILED
	case "complete":
		info, err := os.Stat(e.Path)
		if err != nil {
			d.told.State = browserv1.DownloadState_DOWNLOAD_STATE_FAILED
			return true
		}
		d.told.State = browserv1.DownloadState_DOWNLOAD_STATE_COMPLETE
		d.told.Path, d.told.ArtifactRef = e.Path, s.files.Add(e.Path, "")
		d.told.ReceivedBytes, d.told.TotalBytes = info.Size(), info.Size()
	default:
		return false
	}
	return true
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
	pg, _, err := p.act(ctx, r.GetSessionId(), r.GetPageId(), func(ctx context.Context, pg *page) error {
		_, err := pg.driver.SetFiles(ctx, r.GetTarget(), paths)
		return err
	})
	if err != nil {
		return nil, err
	}
	return &browserv1.SetFilesResponse{PageId: pg.id, Files: paths}, nil
}
