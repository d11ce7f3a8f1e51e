package chain

// The bounds on the work of one verification. An honest path needs a handful of signature checks.
const (
	// maxSignatureChecks bounds public key operations, on certificates and revocation lists.
	maxSignatureChecks = 128
	// maxSteps bounds how often a certificate is considered as the issuer of another.
	maxSteps = 20_000
	// maxWholePaths bounds how many whole paths are validated.
	maxWholePaths = 64
	// maxComparisons bounds how often a name is held against a subtree of name constraints, or a distribution point against another.
	maxComparisons = 250_000
	// maxCandidates bounds the intermediates that a caller hands in.
	maxCandidates = 1_000
	// maxPath bounds a path with its leaf and its anchor, self-issued certificates included.
	maxPath = 12
	// maxIntermediates bounds the certificates between leaf and anchor, unless the caller does; self-issued ones are not counted.
	maxIntermediates = 8
	// maxStatusDepth bounds how revocation of the certificates of signers of revocation lists is followed.
	maxStatusDepth = 3
)

// work is what is left of a verification's bounds. Who sends certificates chooses their names, keys and number, and so what it costs to
// find out that there is no path.
type work struct {
	signatures, steps, paths, comparisons int
	spent                                 bool
}

func newWork() work {
	return work{signatures: maxSignatureChecks, steps: maxSteps, paths: maxWholePaths, comparisons: maxComparisons}
}

// spend takes n from a bound and returns false when there is not enough left; from then on, everything ends.
func (w *work) spend(bound *int, n int) bool {
	if *bound < n {
		w.spent = true
		return false
	}
	*bound -= n
	return !w.spent
}

// exhausted returns the error of a verification that a bound ended.
func (w *work) exhausted(position int, at *member) *Error {
	return refuse(position, at, "a verification's work is bounded",
		"there are too many possible paths, name constraints or revocation lists: %d signature checks, %d candidate issuers, %d paths or %d name comparisons were not enough",
		maxSignatureChecks, maxSteps, maxWholePaths, maxComparisons)
}
