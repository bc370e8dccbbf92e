package main

import (
	"encoding/json"
	"sync"

	"github.com/hashicorp/go-hclog"
	"gopkg.in/natefinch/lumberjack.v2"

	"github.com/droverhq/drover/broker"
	"github.com/droverhq/drover/policy"
)

// auditLog writes one JSON line a call to the file that the config names; files are turned over by size. Without a file
// it writes nothing.
type auditLog struct {
	log hclog.Logger

	mu   sync.Mutex
	conf policy.Audit
	out  *lumberjack.Logger
	lost bool // the last line could not be written
}

// apply follows the config.
func (l *auditLog) apply(conf policy.Audit) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if conf == l.conf {
		return
	}
	l.shut()
	l.conf = conf
	if conf.File != "" {
		l.out = &lumberjack.Logger{Filename: conf.File, MaxSize: conf.MaxMB, MaxBackups: conf.Keep, MaxAge: conf.Days} // mode 0600
	}
}

// write writes one line. What cannot be written is told in the log, once.
func (l *auditLog) write(e broker.Entry) {
	data, err := json.Marshal(e)
	if err != nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.out == nil {
		return
	}
	_, err = l.out.Write(append(data, '\n'))
	if err != nil && !l.lost {
		l.log.Error("audit log cannot be written", "file", l.conf.File, "error", err)
	}
	l.lost = err != nil
}

func (l *auditLog) shut() {
	if l.out != nil {
		_ = l.out.Close()
		l.out = nil
	}
}

// close ends it; what comes after is not written.
func (l *auditLog) close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.shut()
}
