// Package plugintest runs providers in tests: a server in the same process behind a real gRPC connection, a scripted fake
// that answers, waits, fails, panics, hangs or exits as it is told, and the test binary itself as a provider process.
package plugintest
