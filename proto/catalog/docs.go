package catalog

import (
	"fmt"
	"strings"
	"sync"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"

	browserv1 "github.com/droverhq/drover/proto/browser/v1"
)

// comments holds the comment of every rpc, message, field and enum value by its place (see placeOf). protoc-gen-go leaves
// comments out of the generated code, so they come from the embedded descriptor image. Every program needs some of them at
// its start, so only they are read out of the image: building descriptors from it takes twenty times as long.
var comments = sync.OnceValue(func() map[string][]byte {
	out := map[string][]byte{}
	eachField(browserv1.Image, func(num protowire.Number, file []byte) {
		if num == fileInSet {
			collect(file, out)
		}
	})
	return out
})

// Field numbers of google/protobuf/descriptor.proto.
const (
	fileInSet         = 1 // FileDescriptorSet.file
	nameOfFile        = 1 // FileDescriptorProto.name
	messageInFile     = 4
	enumInFile        = 5
	serviceInFile     = 6
	sourceOfFile      = 9 // FileDescriptorProto.source_code_info
	locationOfSource  = 1 // SourceCodeInfo.location
	pathOfLocation    = 1
	commentOfLocation = 3 // leading_comments
	fieldInMessage    = 2
	messageInMessage  = 3
	enumInMessage     = 4
	valueInEnum       = 2
	methodInService   = 2
)

// collect notes the comments of one file.
func collect(file []byte, out map[string][]byte) {
	var name string
	eachField(file, func(num protowire.Number, data []byte) {
		switch num {
		case nameOfFile: // stands before what it names
			name = string(data)
		case sourceOfFile:
			eachField(data, func(num protowire.Number, location []byte) {
				if num != locationOfSource {
					return
				}
				var path, text []byte
				eachField(location, func(num protowire.Number, data []byte) {
					switch num {
					case pathOfLocation:
						path = data
					case commentOfLocation:
						text = data
					default:
					}
				})
				if len(text) > 0 {
					out[name+"\x00"+string(path)] = text
				}
			})
		default:
		}
	})
}

// eachField gives the length-delimited fields of an encoded message.
func eachField(b []byte, give func(protowire.Number, []byte)) {
	for len(b) > 0 {
		num, kind, n := protowire.ConsumeTag(b)
		if n < 0 {
			panic(fmt.Sprintf("catalog: the embedded descriptor image: %v", protowire.ParseError(n)))
		}
		b = b[n:]
		if kind == protowire.BytesType {
			data, _ := protowire.ConsumeBytes(b)
			give(num, data)
		}
		if n = protowire.ConsumeFieldValue(num, kind, b); n < 0 {
			panic(fmt.Sprintf("catalog: the embedded descriptor image: %v", protowire.ParseError(n)))
		}
		b = b[n:]
	}
}

// placeOf gives the path of a descriptor within its file, as SourceCodeInfo.Location.path holds it (packed).
func placeOf(d protoreflect.Descriptor) []byte {
	var number protowire.Number
	switch parent := d.Parent().(type) {
	case protoreflect.FileDescriptor:
		switch d.(type) {
		case protoreflect.MessageDescriptor:
			number = messageInFile
		case protoreflect.EnumDescriptor:
			number = enumInFile
		case protoreflect.ServiceDescriptor:
			number = serviceInFile
		}
		return place(nil, number, d.Index())
	case protoreflect.MessageDescriptor:
		switch d.(type) {
		case protoreflect.FieldDescriptor:
			number = fieldInMessage
		case protoreflect.MessageDescriptor:
			number = messageInMessage
		case protoreflect.EnumDescriptor:
			number = enumInMessage
		}
		return place(placeOf(parent), number, d.Index())
	case protoreflect.EnumDescriptor:
		return place(placeOf(parent), valueInEnum, d.Index())
	case protoreflect.ServiceDescriptor:
		return place(placeOf(parent), methodInService, d.Index())
	}
	return nil
}

func place(above []byte, number protowire.Number, index int) []byte {
	return protowire.AppendVarint(protowire.AppendVarint(above, uint64(number)), uint64(index)) //nolint:gosec // neither is negative
}

// Comment gives the comment of a message, field, enum value, service or rpc, on one line.
func Comment(d protoreflect.Descriptor) string {
	text := comments()[d.ParentFile().Path()+"\x00"+string(placeOf(d))]
	return strings.Join(strings.Fields(string(text)), " ")
}

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
