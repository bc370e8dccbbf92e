package catalog

import (
	_ "embed"
	"fmt"
	"strings"
	"sync"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/descriptorpb"

	browserv1 "github.com/droverhq/drover/proto/browser/v1"
)

// comments maps the full name of every rpc, message, field and enum value to its comment. protoc-gen-go leaves comments
// out of the generated code, so they come from the embedded descriptor image.
var comments = sync.OnceValue(func() map[protoreflect.FullName]string {
	var set descriptorpb.FileDescriptorSet
	if err := proto.Unmarshal(browserv1.Image, &set); err != nil {
		panic(fmt.Sprintf("catalog: the embedded descriptor image: %v", err))
	}
	files, err := protodesc.NewFiles(&set)
	if err != nil {
		panic(fmt.Sprintf("catalog: the embedded descriptor image: %v", err))
	}
	out := map[protoreflect.FullName]string{}
	files.RangeFiles(func(fd protoreflect.FileDescriptor) bool {
		collect(fd, fd, out)
		return true
	})
	return out
})

// container is what a file and a message have in common.
type container interface {
	Messages() protoreflect.MessageDescriptors
	Enums() protoreflect.EnumDescriptors
}

func collect(fd protoreflect.FileDescriptor, c container, out map[protoreflect.FullName]string) {
	locs := fd.SourceLocations()
	put := func(d protoreflect.Descriptor) {
		out[d.FullName()] = strings.Join(strings.Fields(locs.ByDescriptor(d).LeadingComments), " ")
	}
	if c == container(fd) {
		for i := range fd.Services().Len() {
			sd := fd.Services().Get(i)
			put(sd)
			for j := range sd.Methods().Len() {
				put(sd.Methods().Get(j))
			}
		}
	}
	for i := range c.Messages().Len() {
		md := c.Messages().Get(i)
		put(md)
		for j := range md.Fields().Len() {
			put(md.Fields().Get(j))
		}
		collect(fd, md, out)
	}
	for i := range c.Enums().Len() {
		ed := c.Enums().Get(i)
		put(ed)
		for j := range ed.Values().Len() {
			put(ed.Values().Get(j))
		}
	}
}

func comment(name protoreflect.FullName) string { return comments()[name] }

// Comment gives the comment of a message, field, enum value or rpc, on one line.
func Comment(d protoreflect.Descriptor) string { return comment(d.FullName()) }

// order is the order in which the protocol's files are told.
var order = []string{"provider", "session", "page", "tab", "observe", "storage", "files", "event"}

func files() []protoreflect.FileDescriptor {
	var out []protoreflect.FileDescriptor
	seen := map[string]bool{}
	for _, n := range order {
		path := "browser/v1/" + n + ".proto"
		fd, err := protoregistry.GlobalFiles.FindFileByPath(path)
		if err != nil {
			continue
		}
		seen[path] = true
		out = append(out, fd)
	}
	// A file that the order does not name yet comes after those it names.
	protoregistry.GlobalFiles.RangeFilesByPackage("browser.v1", func(fd protoreflect.FileDescriptor) bool {
		if !seen[fd.Path()] {
			out = append(out, fd)
		}
		return true
	})
	return out
}
