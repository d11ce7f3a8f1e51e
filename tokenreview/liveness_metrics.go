package tokenreview

import "github.com/prometheus/client_golang/prometheus"

const viewPrefix = "chancery_liveness_"

// viewMetrics are the metrics of a View, which is their prometheus.Collector: what they say is looked up when it is asked for.
type viewMetrics struct {
	believed, objects, age *prometheus.Desc
}

func newViewMetrics(cluster string) viewMetrics {
	labels := prometheus.Labels{"cluster": cluster}
	return viewMetrics{
		believed: prometheus.NewDesc(viewPrefix+"believed", "1 if the view of the cluster is complete and recent enough to be believed, otherwise 0.", nil, labels),
		objects:  prometheus.NewDesc(viewPrefix+"objects", "Objects in the view of the cluster, by resource.", []string{"resource"}, labels),
		age: prometheus.NewDesc(viewPrefix+"age_seconds", "Time since the last sign of life of a resource's watch; absent before the first list.",
			[]string{"resource"}, labels),
	}
}

// Describe implements prometheus.Collector. Views of several clusters can be registered side by side.
func (v *View) Describe(to chan<- *prometheus.Desc) {
	to <- v.metrics.believed
	to <- v.metrics.objects
	to <- v.metrics.age
}

// Collect implements prometheus.Collector.
func (v *View) Collect(to chan<- prometheus.Metric) {
	believed := 0.0
	if v.Synced() {
		believed = 1
	}
	to <- prometheus.MustNewConstMetric(v.metrics.believed, prometheus.GaugeValue, believed)
	now := v.config.Now()
	for _, f := range v.feeds() {
		to <- prometheus.MustNewConstMetric(v.metrics.objects, prometheus.GaugeValue, float64(f.table.size()), f.source.resource)
		f.mu.Lock()
		age, listed := f.age(now), f.listed
		f.mu.Unlock()
		if listed {
			to <- prometheus.MustNewConstMetric(v.metrics.age, prometheus.GaugeValue, age.Seconds(), f.source.resource)
		}
	}
}
