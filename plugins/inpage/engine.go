package inpage

import (
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"strings"
)

//go:embed engine/*.js
var files embed.FS

// parts are the files of the engine in the order in which they are joined.
var parts = []string{
	"head", "refs", "dom", "styles", "roles", "counters", "names", "states", "items", "outline", "walk", "snapshot",
	"target", "action", "scroll", "edit", "wait", "tail",
}

// source joins the engine. It has a placeholder for the version.
func source() string {
	var b strings.Builder
	for _, name := range parts {
		data, err := files.ReadFile("engine/" + name + ".js")
		if err != nil {
			panic(err) // A file of the engine is missing from the binary; nothing could run.
		}
		b.Write(data)
	}
	return b.String()
}

// digest names a source.
func digest(src string) string {
	sum := sha256.Sum256([]byte(src))
	return hex.EncodeToString(sum[:8])
}

// Bundle gives the engine as a script for an extension to bring along, which defines globalThis.__droverEngine(version), and the
// digest of the engine. The version that a Caller is told begins with that digest when both are of one make.
func Bundle() (script, engine string) {
	src := source()
	body := strings.Replace(src, "'@VERSION@'", "version", 1)
	return "globalThis.__droverEngine = version => (\n" + body + ");\n", digest(src)
}
