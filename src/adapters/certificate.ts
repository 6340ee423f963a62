import { hash, X509Certificate } from 'node:crypto';
import { linkSync, lstatSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { isIP } from 'node:net';
import { tmpdir, userInfo } from 'node:os';
import { dirname, join } from 'node:path';
import type { Clock } from '../ports/clock.ts';
import type { Entropy } from '../ports/entropy.ts';
import { StartError } from '../start-error.ts';
import type { ServerCertificate } from './issue-certificate.ts';

export type { ServerCertificate };

/** A certificate kept in a folder, and the file that holds its authority. */
export interface KeptCertificate extends ServerCertificate {
  caFile: string;
}

interface CertificateOptions {
  clock: Clock;
  entropy: Entropy;
  /** Host names and addresses the server answers under, beside the loopback ones. */
  hosts?: readonly string[];
}

const loopbackHosts = ['localhost', '127.0.0.1', '::1'];
/** A kept certificate with less than this left is replaced. */
const renewBeforeMs = 30 * 24 * 60 * 60 * 1000;

/**
 * The certificate kept in `folder`, or a new one when there is none, it runs out or it lacks a host.
 *
 * NOTE: validity is judged by `clock`, which must be the machine's: TLS clients know no other.
 */
export async function keptCertificate(folder: string, options: CertificateOptions): Promise<KeptCertificate> {
  const isUsable = usableFor(allHosts(options), options.clock.now());
  const file = join(folder, fileName(options));
  let certificate = readUsable(file, isUsable);
  if (certificate === undefined) {
    const made = await makeCertificate(options);
    certificate = keep(file, made, isUsable);
  }
  return { ...certificate, caFile: caFileOf(folder, certificate) };
}

/**
 * A folder for the certificate of a server that keeps no data: private to the user and the same at every
 * start, so that the authority needs to be trusted only once.
 *
 * Throws when someone else made the folder first.
 */
export function temporaryCertificateFolder(): string {
  const { uid } = userInfo();
  const folder = join(tmpdir(), `custos-${uid}`);
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  const found = lstatSync(folder);
  if (!found.isDirectory() || (uid >= 0 && found.uid !== uid)) {
    throw new StartError(
      `\`${folder}\` belongs to someone else; remove it, or keep the data in a folder of yours with --data`,
    );
  }
  return folder;
}

/** Servers for different hosts keep certificates of their own, or they would replace each other's at every start. */
function fileName({ hosts = [] }: CertificateOptions): string {
  const others = hosts.filter((host) => !loopbackHosts.includes(host)).sort();
  if (others.length === 0) return 'certificate.json';
  return `certificate-${hash('sha256', others.join('\n')).slice(0, 12)}.json`;
}

type IsUsable = (certificate: ServerCertificate) => boolean;

function usableFor(hosts: readonly string[], nowMs: number): IsUsable {
  return ({ ca, cert }) => {
    const leaf = new X509Certificate(cert);
    const endMs = leaf.validToDate.getTime() - renewBeforeMs;
    const isCurrent = leaf.validFromDate.getTime() <= nowMs && nowMs < endMs;
    return (
      isCurrent && hosts.every((host) => covers(leaf, host)) && leaf.verify(new X509Certificate(ca).publicKey)
    );
  };
}

function readUsable(file: string, isUsable: IsUsable): ServerCertificate | undefined {
  try {
    const kept = JSON.parse(readFileSync(file, 'utf8')) as ServerCertificate;
    return isUsable(kept) ? kept : undefined;
  } catch {
    // Absent or unreadable: either way a new one takes its place.
    return undefined;
  }
}

function covers(leaf: X509Certificate, host: string): boolean {
  return (isIP(host) === 0 ? leaf.checkHost(host) : leaf.checkIP(host)) !== undefined;
}

/** Stores `made` unless another process was faster; then that one's is the certificate. */
function keep(file: string, made: ServerCertificate, isUsable: IsUsable): ServerCertificate {
  const draft = `${file}.${process.pid}`;
  mkdirSync(dirname(file), { recursive: true, mode: 0o700 });
  writeFileSync(draft, `${JSON.stringify(made, undefined, 2)}\n`, { mode: 0o600 });
  try {
    if (readUsable(file, isUsable) === undefined) rmSync(file, { force: true });
    linkSync(draft, file);
    return made;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
    return readUsable(file, isUsable) ?? made;
  } finally {
    rmSync(draft, { force: true });
  }
}

/** Writes the authority beside the kept certificate. Its name holds its fingerprint: it never changes under a client. */
function caFileOf(folder: string, certificate: ServerCertificate): string {
  const fingerprint = new X509Certificate(certificate.ca).fingerprint256.replaceAll(':', '').toLowerCase();
  const file = join(folder, `ca-${fingerprint.slice(0, 12)}.pem`);
  try {
    if (readFileSync(file, 'utf8') === certificate.ca) return file;
  } catch {
    // Not written yet.
  }
  writeFileSync(file, certificate.ca, { mode: 0o644 });
  return file;
}

/** Makes a certificate for the loopback hosts and `hosts`, and an authority that vouches for it alone. */
export async function makeCertificate(options: CertificateOptions): Promise<ServerCertificate> {
  // Loaded only here: it is slow to load, and most starts find a kept certificate.
  const { issueCertificate } = await import('./issue-certificate.ts');
  return issueCertificate({ ...options, hosts: allHosts(options) });
}

function allHosts({ hosts = [] }: CertificateOptions): string[] {
  return [...new Set([...loopbackHosts, ...hosts])];
}
