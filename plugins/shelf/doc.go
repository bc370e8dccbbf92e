// Package shelf keeps the files of a provider's session: pictures and downloads that artifact.get reads, under names that
// no server chooses, and the check of files that a page is given.
package shelf
