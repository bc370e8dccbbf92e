package mcp

import (
	"net/url"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	browserv1 "github.com/droverhq/drover/proto/browser/v1"
)

// imageLimit is the largest picture that a reply holds, in bytes; a larger one is a link.
const imageLimit = 1 << 20

// picture adds a screenshot: as an image for the model to see, or as a link to it.
func (r *reply) picture(c *client, resp *browserv1.ScreenshotResponse) {
	data := resp.GetImage()
	switch {
	case len(data) == 0:
		r.say("the picture is too large to be given; element_ref, clip, or format: jpeg, makes it smaller")
	case len(data) <= imageLimit:
		r.content = append(r.content, &mcp.ImageContent{Data: data, MIMEType: resp.GetMediaType()})
	default:
		name := "screenshot.png"
		if resp.GetMediaType() == "image/jpeg" {
			name = "screenshot.jpg"
		}
		r.content = append(r.content, c.kept.link(name, resp.GetMediaType(), data))
		r.say("the picture is a resource link, being larger than 1 MiB; element_ref, clip, or format: jpeg, makes it smaller")
	}
}

// downloads adds links to the files that are whole.
func (r *reply) downloads(s *seat, list []*browserv1.Download) {
	for _, d := range list {
		if d.GetState() != browserv1.DownloadState_DOWNLOAD_STATE_COMPLETE || d.GetArtifactRef() == "" {
			continue
		}
		size := d.GetReceivedBytes()
		r.content = append(r.content, &mcp.ResourceLink{
			URI: artifactURI(s.name, d.GetArtifactRef()), Name: d.GetSuggestedFilename(), Size: &size,
		})
	}
}

// artifactURI is the URI of a file or picture of a session.
func artifactURI(session, ref string) string {
	return "browser://sessions/" + url.PathEscape(session) + "/artifacts/" + url.PathEscape(ref)
}
