// Package mcp is the face that agents meet: the catalog's methods as tools of the Model Context Protocol, on stdio, on a
// socket and over HTTP. A tool is derived from its rpc: name, profile, hints, fields and comments. The face adds what a
// model needs: a session that is there without asking, an outline in place of a tree, a budget for every reply, errors with
// the next step, and marks around text that comes from a page.
package mcp
