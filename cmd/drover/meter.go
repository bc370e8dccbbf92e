package main

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/droverhq/drover/plugins/host"
)

// processMeter counts what becomes of provider processes, of which the broker knows nothing.
type processMeter struct {
	restarts *prometheus.CounterVec
	zombies  prometheus.Counter
}

func newProcessMeter() *processMeter {
	return &processMeter{
		restarts: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "drover_provider_restarts_total",
			Help: "Starts of a provider's process in place of one that had ended by itself, failed to start, or was restarted; those after an idle time are not counted.",
		}, []string{"provider"}),
		zombies: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "drover_zombies_reaped_total",
			Help: "Processes that a broker which was killed had left behind, and that this one ended.",
		}),
	}
}

func (m *processMeter) collectors() []prometheus.Collector {
	return []prometheus.Collector{m.restarts, m.zombies}
}

// follow gives what hears of a provider's changes, in their order, and counts its restarts.
func (m *processMeter) follow(id string) func(host.Change) {
	restarts, rested := m.restarts.WithLabelValues(id), false
	return func(c host.Change) {
		switch {
		case c.From == host.StateDraining && c.To == host.StateStopped:
			rested = true
		case c.To == host.StateStarting:
			if c.Status.Starts > 1 && !rested {
				restarts.Inc()
			}
			rested = false
		}
	}
}

func (m *processMeter) swept(s host.Swept) { m.zombies.Add(float64(len(s.PIDs))) }
