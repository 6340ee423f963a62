import { bodyText, contentType, payloadParts, type SampleRequest } from './sample-request.ts';

// JSON strings are also valid string literals in Go and Java.
const text = (value: string): string => JSON.stringify(value);

/** Writes a raw string literal if the string allows one, because a body is easier to read without escapes. */
const goText = (value: string): string => (/[`\r]/.test(value) ? text(value) : `\`${value}\``);

export function asGo(request: SampleRequest): string {
  const { method, url, headers, value, appId, appSecret, credentials, keyFiles, caFile, prefix } = request;
  const isSigned = keyFiles.length > 0;
  const hasBody = value !== undefined;
  const fromEnvironment = credentials === 'user' || (credentials === 'secret' && appSecret === undefined);
  const imports = [
    ...['fmt', 'io', 'net/http'],
    ...(hasBody ? ['strings'] : []),
    ...(fromEnvironment || isSigned || caFile !== undefined ? ['os'] : []),
    ...(caFile === undefined ? [] : ['crypto/tls', 'crypto/x509']),
    ...(isSigned ? ['crypto/ecdsa', 'crypto/rand', 'crypto/sha256', 'crypto/x509'] : []),
    ...(isSigned ? ['encoding/base64', 'encoding/pem', 'strings'] : []),
  ];
  const secret = appSecret === undefined ? 'os.Getenv("APP_SECRET")' : text(appSecret);
  const set = (name: string, source: string): string => `\trequest.Header.Set(${text(name)}, ${source})`;
  return [
    '// go run request.go',
    'package main',
    '',
    'import (',
    ...[...new Set(imports)].sort().map((name) => `\t"${name}"`),
    ')',
    '',
    'func must[T any](value T, err error) T {',
    '\tif err != nil {',
    '\t\tpanic(err)',
    '\t}',
    '\treturn value',
    '}',
    '',
    'func main() {',
    ...(appId === '' ? [] : [`\tappID := ${text(appId)}`]),
    `\turl := ${text(url)}`,
    ...(hasBody ? [`\tbody := ${goText(bodyText(request))}`] : []),
    ...(isSigned ? goSignature(request) : []),
    `\trequest := must(http.NewRequest("${method}", url, ${hasBody ? 'strings.NewReader(body)' : 'nil'}))`,
    ...(credentials === 'secret' ? [`\trequest.SetBasicAuth(appID, ${secret})`] : []),
    ...(credentials === 'user' ? [set('authorization', '"Bearer "+os.Getenv("USER_TOKEN")')] : []),
    ...(appId === '' ? [] : [set(`${prefix}-app-id`, 'appID')]),
    ...Object.entries(headers).map(([name, given]) => set(name, text(given))),
    ...(hasBody ? [set('content-type', text(contentType(request)))] : []),
    ...(isSigned ? [set(`${prefix}-authorization-signature`, 'strings.Join(signatures, ",")')] : []),
    '',
    ...(caFile === undefined
      ? ['\tclient := http.DefaultClient']
      : [
          '\ttrusted := x509.NewCertPool()',
          `\ttrusted.AppendCertsFromPEM(must(os.ReadFile(${text(caFile)})))`,
          '\tclient := http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: trusted}}}',
        ]),
    '\tresponse := must(client.Do(request))',
    '\tdefer response.Body.Close()',
    '\tfmt.Println(string(must(io.ReadAll(response.Body))))',
    '}',
  ].join('\n');
}

/** Splits the payload into operands of a concatenation: constant strings and the variables between them. */
function payloadOperands(
  request: SampleRequest,
  variables: { readonly appId: string; readonly url: string; readonly quote: (value: string) => string },
): string {
  const { headers, end } = payloadParts(request);
  const { appId, url, quote } = variables;
  const start = request.value === undefined ? '{"headers":{' : ',"headers":{';
  return [
    ...(request.value === undefined ? [] : [quote('{"body":'), 'body']),
    ...(request.appId === ''
      ? [quote(start + headers.replace(/^,/, '') + end)]
      : [quote(`${start}"${request.prefix}-app-id":"`), appId, quote(`"${headers}${end}`)]),
    url,
    quote('","version":1}'),
  ].join(' + ');
}

function goSignature(request: SampleRequest): string[] {
  const files = request.keyFiles.map(text).join(', ');
  return [
    '\t// The canonical form (RFC 8785) of what is signed: no spaces, keys in alphabetical order.',
    `\tpayload := ${payloadOperands(request, { appId: 'appID', url: 'url', quote: goText })}`,
    '\tdigest := sha256.Sum256([]byte(payload))',
    '\tvar signatures []string',
    `\tfor _, file := range []string{${files}} {`,
    '\t\tblock, _ := pem.Decode(must(os.ReadFile(file)))',
    '\t\tkey := must(x509.ParsePKCS8PrivateKey(block.Bytes)).(*ecdsa.PrivateKey)',
    '\t\tsignature := must(ecdsa.SignASN1(rand.Reader, key, digest[:]))',
    '\t\tsignatures = append(signatures, base64.StdEncoding.EncodeToString(signature))',
    '\t}',
    '',
  ];
}

export function asJava(request: SampleRequest): string {
  const { method, url, headers, value, appId, appSecret, credentials, keyFiles, caFile, prefix } = request;
  const isSigned = keyFiles.length > 0;
  const hasBody = value !== undefined;
  const secret = appSecret === undefined ? 'System.getenv("APP_SECRET")' : text(appSecret);
  const imports = [
    ...[
      'java.net.URI',
      'java.net.http.HttpClient',
      'java.net.http.HttpRequest',
      'java.net.http.HttpResponse',
    ],
    ...(caFile === undefined ? [] : ['java.nio.file.Files', 'java.nio.file.Path', 'java.security.KeyStore']),
    ...(caFile === undefined ? [] : ['java.security.cert.CertificateFactory', 'javax.net.ssl.SSLContext']),
    ...(caFile === undefined ? [] : ['javax.net.ssl.TrustManagerFactory']),
    ...(isSigned ? ['java.nio.file.Files', 'java.nio.file.Path', 'java.security.KeyFactory'] : []),
    ...(isSigned ? ['java.security.Signature', 'java.security.spec.PKCS8EncodedKeySpec'] : []),
    ...(isSigned ? ['java.util.ArrayList'] : []),
    ...(isSigned || credentials === 'secret' ? ['java.util.Base64'] : []),
  ];
  const header = (name: string, source: string): string => `        .header(${text(name)}, ${source})`;
  const publisher = hasBody ? 'ofString(body)' : 'noBody()';
  return [
    '// java Request.java',
    ...[...new Set(imports)].sort().map((name) => `import ${name};`),
    '',
    'public class Request {',
    '  public static void main(String[] arguments) throws Exception {',
    ...(appId === '' ? [] : [`    var appId = ${text(appId)};`]),
    `    var url = ${text(url)};`,
    ...(hasBody ? [`    var body = ${text(bodyText(request))};`] : []),
    ...(isSigned ? javaSignature(request) : []),
    ...(credentials === 'secret'
      ? [`    var basic = Base64.getEncoder().encodeToString((appId + ":" + ${secret}).getBytes("UTF-8"));`]
      : []),
    '    var request = HttpRequest.newBuilder(URI.create(url))',
    ...(credentials === 'secret' ? [header('authorization', '"Basic " + basic')] : []),
    ...(credentials === 'user' ? [header('authorization', '"Bearer " + System.getenv("USER_TOKEN")')] : []),
    ...(appId === '' ? [] : [header(`${prefix}-app-id`, 'appId')]),
    ...Object.entries(headers).map(([name, given]) => header(name, text(given))),
    ...(hasBody ? [header('content-type', text(contentType(request)))] : []),
    ...(isSigned ? [header(`${prefix}-authorization-signature`, 'String.join(",", signatures)')] : []),
    `        .method("${method}", HttpRequest.BodyPublishers.${publisher})`,
    '        .build();',
    caFile === undefined
      ? '    var client = HttpClient.newHttpClient();'
      : `    var client = HttpClient.newBuilder().sslContext(trusting(Path.of(${text(caFile)}))).build();`,
    '    System.out.println(client.send(request, HttpResponse.BodyHandlers.ofString()).body());',
    '  }',
    ...(caFile === undefined ? [] : javaTrust),
    '}',
  ].join('\n');
}

function javaSignature(request: SampleRequest): string[] {
  const files = request.keyFiles.map(text).join(', ');
  return [
    '    // The canonical form (RFC 8785) of what is signed: no spaces, keys in alphabetical order.',
    `    var payload = ${payloadOperands(request, { appId: 'appId', url: 'url', quote: text })};`,
    '    var signatures = new ArrayList<String>();',
    `    for (var file : new String[] {${files}}) {`,
    '      var pem = Files.readString(Path.of(file)).replaceAll("-----.*?-----", "");',
    '      var key = new PKCS8EncodedKeySpec(Base64.getMimeDecoder().decode(pem));',
    '      var signer = Signature.getInstance("SHA256withECDSA");',
    '      signer.initSign(KeyFactory.getInstance("EC").generatePrivate(key));',
    '      signer.update(payload.getBytes("UTF-8"));',
    '      signatures.add(Base64.getEncoder().encodeToString(signer.sign()));',
    '    }',
  ];
}

const javaTrust = [
  '',
  '  static SSLContext trusting(Path file) throws Exception {',
  '    var store = KeyStore.getInstance(KeyStore.getDefaultType());',
  '    store.load(null, null);',
  '    try (var certificate = Files.newInputStream(file)) {',
  '      store.setCertificateEntry("custos", CertificateFactory.getInstance("X.509").generateCertificate(certificate));',
  '    }',
  '    var trust = TrustManagerFactory.getInstance(TrustManagerFactory.getDefaultAlgorithm());',
  '    trust.init(store);',
  '    var context = SSLContext.getInstance("TLS");',
  '    context.init(null, trust.getTrustManagers(), null);',
  '    return context;',
  '  }',
];
