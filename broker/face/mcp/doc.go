// Package mcp is x.
package mcp

var snapshotWords = []string{"none", "delta", "full"}
