module github.com/chancery-ca/chancery/test/conformance

go 1.26.4

replace github.com/chancery-ca/chancery => ../..

require (
	github.com/Netflix/bettertls v0.0.0-20250909192348-e1e99e353074
	github.com/c2sp/wycheproof v0.0.0-20260902155932-3fa63dd0344a
	github.com/chancery-ca/chancery v0.0.0-00010101000000-000000000000
	github.com/zmap/zcrypto v0.0.0-20260906180147-3ed30b1e9340
	github.com/zmap/zlint/v3 v3.7.3
)

require (
	github.com/google/uuid v1.6.0 // indirect
	github.com/pelletier/go-toml v1.9.5 // indirect
	github.com/sirupsen/logrus v1.10.2 // indirect
	github.com/spiffe/go-spiffe/v2 v2.9.0 // indirect
	github.com/weppos/publicsuffix-go v0.50.4-0.20260821095816-b0fdb5c2d345 // indirect
	golang.org/x/crypto v0.59.0 // indirect
	golang.org/x/net v0.62.0 // indirect
	golang.org/x/sys v0.50.0 // indirect
	golang.org/x/text v0.44.0 // indirect
	google.golang.org/protobuf v1.36.12 // indirect
)
