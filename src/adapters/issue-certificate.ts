// @peculiar/x509 uses decorators, which need this polyfill to be loaded first.
import 'reflect-metadata';
import { webcrypto } from 'node:crypto';
import { isIP } from 'node:net';
import * as x509 from '@peculiar/x509';
import type { Clock, Entropy } from '../ports/runtime.ts';

/** A server certificate, its private key, and the authority that a client must trust, all as PEM. */
export interface ServerCertificate {
  /** The authority's certificate, e.g. for `curl --cacert`. */
  ca: string;
  /** The server's certificate followed by the authority's. */
  cert: string;
  key: string;
}

interface CertificateRequest {
  clock: Clock;
  entropy: Entropy;
  /** Host names and addresses that the certificate covers. */
  hosts: readonly string[];
}

/** CHOICE: 397 days, the longest validity that browsers accept without a warning. */
const lifetimeMs = 397 * 24 * 60 * 60 * 1000;

/**
 * Creates an authority and a server certificate signed by it (ECDSA P-256, RFC 5280).
 *
 * INVARIANT: the authority's private key is never stored, so no other certificate can be issued under the authority.
 */
export async function issueCertificate(options: CertificateRequest): Promise<ServerCertificate> {
  x509.cryptoProvider.set(webcrypto);
  const algorithm = { name: 'ECDSA', namedCurve: 'P-256', hash: 'SHA-256' };
  const newKeys = () => webcrypto.subtle.generateKey(algorithm, true, ['sign', 'verify']);
  // The certificate is valid from one hour ago, for clients whose clock is behind.
  const notBefore = new Date(options.clock.now() - 60 * 60 * 1000);
  const notAfter = new Date(options.clock.now() + lifetimeMs);
  const validity = { notBefore, notAfter, signingAlgorithm: algorithm };

  const caKeys = await newKeys();
  const ca = await x509.X509CertificateGenerator.createSelfSigned({
    ...validity,
    serialNumber: serialNumber(options.entropy),
    name: `CN=Custos local authority ${serialNumber(options.entropy).slice(0, 8)}, O=Custos`,
    keys: caKeys,
    extensions: [
      new x509.BasicConstraintsExtension(true, 0, true),
      new x509.KeyUsagesExtension(x509.KeyUsageFlags.keyCertSign | x509.KeyUsageFlags.cRLSign, true),
      await x509.SubjectKeyIdentifierExtension.create(caKeys.publicKey),
    ],
  });
  const keys = await newKeys();
  const names = options.hosts.map((host) => ({
    type: isIP(host) === 0 ? ('dns' as const) : ('ip' as const),
    value: host,
  }));
  const leaf = await x509.X509CertificateGenerator.create({
    ...validity,
    serialNumber: serialNumber(options.entropy),
    subject: 'CN=Custos, O=Custos',
    issuer: ca.subject,
    publicKey: keys.publicKey,
    signingKey: caKeys.privateKey,
    extensions: [
      new x509.BasicConstraintsExtension(false, undefined, true),
      new x509.KeyUsagesExtension(x509.KeyUsageFlags.digitalSignature, true),
      new x509.ExtendedKeyUsageExtension([x509.ExtendedKeyUsage.serverAuth]),
      new x509.SubjectAlternativeNameExtension(names),
      await x509.SubjectKeyIdentifierExtension.create(keys.publicKey),
      await x509.AuthorityKeyIdentifierExtension.create(ca),
    ],
  });
  const pkcs8 = await webcrypto.subtle.exportKey('pkcs8', keys.privateKey);
  const caPem = `${ca.toString('pem')}\n`;
  return {
    ca: caPem,
    cert: `${leaf.toString('pem')}\n${caPem}`,
    key: `${x509.PemConverter.encode(pkcs8, 'PRIVATE KEY')}\n`,
  };
}

/** Makes a serial number. It must be positive and have at most 20 octets (RFC 5280 §4.1.2.2). */
function serialNumber(entropy: Entropy): string {
  const bytes = Buffer.from(entropy.bytes(16));
  bytes[0] = (bytes[0]! & 0x7f) | 0x40;
  return bytes.toString('hex');
}
