package broker

import (
	"math"
	"sync"
	"time"

	"golang.org/x/time/rate"
	"google.golang.org/protobuf/proto"

	"github.com/droverhq/drover/policy"
	"github.com/droverhq/drover/proto/fault"
)

// quotas hold what every principal has left of its limits.
type quotas struct {
	mu      sync.Mutex
	byOwner map[string]*quota
	making  map[string]int // sessions that are being made, by owner, where they are limited
}

// quota is what one principal has left.
type quota struct {
	calls *rate.Limiter
	bytes *rate.Limiter
	last  time.Time
}

// quotaForget is how long a principal that does not call is remembered: longer than any limit looks back.
const quotaForget = 10 * time.Minute

// of gives the quota of a principal under the limits in force; false when there are none.
func (q *quotas) of(owner string, l policy.Limits) (quota, bool) {
	if l.CallsPerSecond == 0 && l.BytesPerMinute == 0 {
		return quota{}, false
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	now := time.Now()
	k := q.byOwner[owner]
	if k == nil {
		for id, other := range q.byOwner {
			if now.Sub(other.last) > quotaForget {
				delete(q.byOwner, id)
			}
		}
		k = &quota{calls: rate.NewLimiter(rate.Inf, 0), bytes: rate.NewLimiter(rate.Inf, 0)}
		q.byOwner[owner] = k
	}
	k.last = now
	k.calls = adjust(k.calls, rate.Limit(l.CallsPerSecond), l.CallsPerSecond)
	k.bytes = adjust(k.bytes, rate.Limit(float64(l.BytesPerMinute)/60), int(min(l.BytesPerMinute, math.MaxInt32)))
	return *k, true
}

// adjust follows a limit that a reload changed; none is no limit.
func adjust(l *rate.Limiter, limit rate.Limit, burst int) *rate.Limiter {
	if limit == 0 {
		limit, burst = rate.Inf, 0
	}
	if l.Limit() == limit && l.Burst() == burst {
		return l
	}
	return rate.NewLimiter(limit, burst)
}

// admit takes one call from a principal's limits, or says when there is room again.
func (q *quotas) admit(owner string, l policy.Limits) error {
	k, ok := q.of(owner, l)
	if !ok {
		return nil
	}
	now := time.Now()
	if wait := until(k.bytes, now, 0); wait > 0 {
		return full("the answers of this minute had %d bytes, which is the limit", l.BytesPerMinute, wait)
	}
	r := k.calls.ReserveN(now, 1)
	if wait := r.DelayFrom(now); wait > 0 {
		r.CancelAt(now)
		return full("there were %d calls in a second, which is the limit", int64(l.CallsPerSecond), wait)
	}
	return nil
}

// until says how long it takes until a limiter that may be overdrawn has something left again.
func until(l *rate.Limiter, now time.Time, least float64) time.Duration {
	if l.Limit() == rate.Inf {
		return 0
	}
	have := l.TokensAt(now)
	if have > least || l.Limit() <= 0 {
		return 0
	}
	return time.Duration((least - have + 1) / float64(l.Limit()) * float64(time.Second))
}

// spend takes the bytes of an answer from a principal's limits. How many they are is only known then, so that they may be
// overdrawn by one answer; what comes after waits for that.
func (q *quotas) spend(owner string, l policy.Limits, resp proto.Message) {
	if l.BytesPerMinute == 0 || resp == nil {
		return
	}
	k, _ := q.of(owner, l)
	left, now := proto.Size(resp), time.Now()
	for left > 0 {
		n := min(left, max(k.bytes.Burst(), 1))
		k.bytes.ReserveN(now, n)
		left -= n
	}
}

func full(format string, limit int64, wait time.Duration) error {
	return fault.New(fault.NotReady, format, limit).Reason("capacity").RetryAfter(int(wait.Milliseconds()) + 1)
}
