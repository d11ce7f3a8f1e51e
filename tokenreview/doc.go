// Package tokenreview says who calls: it turns the bearer credentials of workloads into an identity.Principal.
//
// Online asks a cluster about a service-account token, by TokenReview. Join looks a one-time join token up in the ledger. Chain tries
// them in order: the first that handles a credential decides.
//
// What a token claims is read before it is verified only to refuse early and to bound the cache; a Principal is made from what the
// cluster or the ledger answered. The package never verifies a signature itself, never falls back to a weaker check when the strict
// one fails, never consumes a join token (the ledger does, with the reservation), never decides what a principal may have, and puts
// no token into an error, a log or a metric.
package tokenreview
