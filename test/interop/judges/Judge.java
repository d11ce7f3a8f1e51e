import java.io.FileInputStream;
import java.io.InputStream;
import java.security.cert.CertPathParameters;
import java.security.cert.CertificateException;
import java.security.cert.CertificateFactory;
import java.security.cert.PKIXBuilderParameters;
import java.security.cert.TrustAnchor;
import java.security.cert.X509CertSelector;
import java.security.cert.X509Certificate;
import java.util.ArrayList;
import java.util.Date;
import java.util.HashSet;
import java.util.List;
import java.util.Scanner;
import java.util.Set;
import javax.net.ssl.CertPathTrustManagerParameters;
import javax.net.ssl.TrustManagerFactory;
import javax.net.ssl.X509TrustManager;
import sun.security.util.HostnameChecker;

/**
 * Judges by Java's own trust manager, as TLS uses it, and by its check of host names. Reads questions on standard input, a line each: chain, root,
 * seconds of the time, purpose and host, with tabs between; a dash for no host. Writes an answer a line: "ok", or why not.
 */
public class Judge {
    public static void main(String[] arguments) throws Exception {
        Scanner input = new Scanner(System.in);
        while (input.hasNextLine()) {
            String[] question = input.nextLine().split("\t");
            String answer = "ok";
            try {
                judge(question);
            } catch (CertificateException refused) {
                Throwable cause = refused;
                while (cause.getCause() != null) {
                    cause = cause.getCause();
                }
                answer = (cause + "").replace('\n', ' ');
            }
            System.out.println(answer);
        }
    }

    static void judge(String[] question) throws Exception {
        X509Certificate[] chain = read(question[0]).toArray(new X509Certificate[0]);
        Set<TrustAnchor> anchors = new HashSet<>();
        for (X509Certificate root : read(question[1])) {
            anchors.add(new TrustAnchor(root, null));
        }
        PKIXBuilderParameters parameters = new PKIXBuilderParameters(anchors, new X509CertSelector());
        parameters.setRevocationEnabled(false);
        parameters.setDate(new Date(Long.parseLong(question[2]) * 1000));
        TrustManagerFactory factory = TrustManagerFactory.getInstance("PKIX");
        factory.init(new CertPathTrustManagerParameters((CertPathParameters) parameters));
        X509TrustManager manager = (X509TrustManager) factory.getTrustManagers()[0];
        if (question[3].equals("client")) {
            manager.checkClientTrusted(chain, "UNKNOWN");
        } else {
            manager.checkServerTrusted(chain, "UNKNOWN");
        }
        if (!question[4].equals("-")) {
            HostnameChecker.getInstance(HostnameChecker.TYPE_TLS).match(question[4], chain[0]);
        }
    }

    static List<X509Certificate> read(String path) throws Exception {
        List<X509Certificate> certificates = new ArrayList<>();
        try (InputStream file = new FileInputStream(path)) {
            for (var certificate : CertificateFactory.getInstance("X.509").generateCertificates(file)) {
                certificates.add((X509Certificate) certificate);
            }
        }
        return certificates;
    }
}
