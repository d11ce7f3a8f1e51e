"""Judges by pyca/cryptography and by pkilint. Reads questions as JSON on standard input and writes answers, in the same order.

cryptography QUESTIONS: [{"chain", "root", "at", "purpose", "host"}]; an answer is empty if the chain is accepted, or says why not.
pkilint QUESTIONS: [{"certificate", "issuer"}], the issuer being empty for a root; an answer is a list of findings, [severity, code, message].
"""

import datetime
import ipaddress
import json
import sys


def read(path):
    with open(path, "rb") as file:
        return file.read()


def by_cryptography(question):
    from cryptography import x509
    from cryptography.x509 import verification

    leaf, *intermediates = x509.load_pem_x509_certificates(read(question["chain"]))
    at = datetime.datetime.fromtimestamp(question["at"], datetime.timezone.utc).replace(tzinfo=None)
    builder = verification.PolicyBuilder().time(at)
    builder = builder.store(verification.Store(x509.load_pem_x509_certificates(read(question["root"]))))
    try:
        if question["purpose"] == "client":
            builder.build_client_verifier().verify(leaf, intermediates)
            return ""
        try:
            subject = x509.IPAddress(ipaddress.ip_address(question["host"]))
        except ValueError:
            subject = x509.DNSName(question["host"])
        builder.build_server_verifier(subject).verify(leaf, intermediates)
        return ""
    except verification.VerificationError as error:
        return str(error)


class PKILint:
    """The linters of lint_pkix_cert and lint_pkix_signer_signee_cert_chain, made once."""

    def __init__(self):
        from pkilint import loader
        from pkilint.bin import lint_pkix_signer_signee_cert_chain as pair
        from pkilint.pkix import certificate, extension, name

        self.load = loader.RFC5280CertificateDocumentLoader().get_file_loader_func(loader.DocumentFormat.DETECT)
        self.single = certificate.create_pkix_certificate_validator_container(
            certificate.create_decoding_validators(name.ATTRIBUTE_TYPE_MAPPINGS, extension.EXTENSION_MAPPINGS),
            [
                certificate.create_issuer_validator_container([]),
                certificate.create_validity_validator_container(),
                certificate.create_subject_validator_container([]),
                certificate.create_extensions_validator_container([]),
                certificate.create_spki_validator_container([]),
            ],
        )
        self.decoder = pair.create_decoder_validation_container()
        self.issuer, self.subject = pair.create_issuer_validation_container(), pair.create_subject_validation_container()

    def __call__(self, question):
        with open(question["certificate"], "rb") as file:
            results = self.single.validate(self.load(file, question["certificate"]).root)
        if not question["issuer"]:
            return self.findings(results)
        documents = {}
        for role, path in (("issuer", question["issuer"]), ("subject", question["certificate"])):
            with open(path, "rb") as file:
                documents[role] = self.load(file, path, role, documents)
        for document in documents.values():
            self.decoder.validate(document.root)
        results += self.issuer.validate(documents["issuer"].root)
        results += self.subject.validate(documents["subject"].root)
        return self.findings(results)

    @staticmethod
    def findings(results):
        return [
            [description.finding.severity.name, description.finding.code, description.message or ""]
            for result in results
            for description in result.finding_descriptions
        ]


def main():
    judge = by_cryptography if sys.argv[1] == "cryptography" else PKILint()
    json.dump([judge(question) for question in json.load(sys.stdin)], sys.stdout)


main()
