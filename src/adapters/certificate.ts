import { hash, X509Certificate } from 'node:crypto';
import {
  linkSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { isIP } from 'node:net';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { makeFolder } from '../config/make-folder.ts';
import { StartError } from '../config/start-error.ts';
import type { Clock, Entropy } from '../ports/runtime.ts';
import type { ServerCertificate } from './issue-certificate.ts';

export type { ServerCertificate };

/** A certificate that is stored in a folder, and the file of its authority in that folder. */
export interface StoredCertificate extends ServerCertificate {
  caFile: string;
}

interface CertificateOptions {
  clock: Clock;
  entropy: Entropy;
  /** The server's host names and addresses, in addition to loopback. */
  hosts?: readonly string[];
}

const loopbackHosts = ['localhost', '127.0.0.1', '::1'];
/** A stored certificate is replaced when its remaining validity is shorter. */
const renewBeforeMs = 30 * 24 * 60 * 60 * 1000;

/**
 * Loads the certificate stored in `folder`. Creates a new one when there is none, when it is about to expire or when it
 * lacks a host.
 *
 * NOTE: `clock` must be the system clock, which TLS clients use to check the validity.
 */
export async function loadOrCreateCertificate(
  folder: string,
  options: CertificateOptions,
): Promise<StoredCertificate> {
  const isUsable = usableFor(allHosts(options), options.clock.now());
  const file = join(folder, fileName(options));
  let certificate = readUsable(file, isUsable);
  if (certificate === undefined) {
    const created = await makeCertificate(options);
    certificate = store(file, created, isUsable);
  }
  return { ...certificate, caFile: caFileOf(folder, options.clock.now()) };
}

/**
 * Returns the folder for the certificate of a server without a data folder. It is private to the user and the same at
 * every start, so that clients need to trust the authority only once.
 *
 * @throws StartError when the folder belongs to another user.
 */
export function temporaryCertificateFolder(): string {
  const uid = process.getuid?.() ?? -1;
  const folder = join(tmpdir(), `custos-${uid}`);
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  const found = lstatSync(folder);
  if (!found.isDirectory() || (uid >= 0 && found.uid !== uid)) {
    throw new StartError(
      `\`${folder}\` belongs to another user; remove it, or store the data in your own folder with --data`,
    );
  }
  return folder;
}

/**
 * Returns a file name for a set of hosts. Servers for different hosts would otherwise replace each other's certificate.
 */
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
    const stored = JSON.parse(readFileSync(file, 'utf8')) as ServerCertificate;
    return isUsable(stored) ? stored : undefined;
  } catch {
    // The file is missing or unreadable, and the caller creates a new one.
    return undefined;
  }
}

function covers(leaf: X509Certificate, host: string): boolean {
  // The first use of `isIP` on a name compiles the regular expression for IPv6, which would take 10 ms at every
  // start.
  const isName = host === 'localhost' || isIP(host) === 0;
  return (isName ? leaf.checkHost(host) : leaf.checkIP(host)) !== undefined;
}

/** Stores the certificate. If another process has stored one in the meantime, returns that one. */
function store(file: string, created: ServerCertificate, isUsable: IsUsable): ServerCertificate {
  const temporaryFile = `${file}.${process.pid}`;
  makeFolder(dirname(file), 0o700);
  writeFileSync(temporaryFile, `${JSON.stringify(created, undefined, 2)}\n`, { mode: 0o600 });
  try {
    if (readUsable(file, isUsable) === undefined) rmSync(file, { force: true });
    linkSync(temporaryFile, file);
    return created;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
    return readUsable(file, isUsable) ?? created;
  } finally {
    rmSync(temporaryFile, { force: true });
  }
}

const caFileName = 'ca.pem';

/**
 * Adds the authority to the file of all authorities in the folder, which clients trust. Servers for different hosts
 * have different authorities, and a renewed certificate has a new one, but clients keep trusting the same file.
 *
 * NOTE: it reads the file again after writing it, because another process may have written the file without this
 * authority.
 */
function caFileOf(folder: string, nowMs: number): string {
  const file = join(folder, caFileName);
  for (;;) {
    const wanted = storedAuthorities(folder);
    const written = authoritiesIn(readText(file));
    if (wanted.every((ca) => written.includes(ca))) return file;
    const current = written.filter((ca) => new X509Certificate(ca).validToDate.getTime() > nowMs);
    const temporaryFile = `${file}.${process.pid}`;
    writeFileSync(temporaryFile, [...new Set([...wanted, ...current])].join(''), { mode: 0o644 });
    renameSync(temporaryFile, file);
  }
}

/** Returns the authorities of the certificates in the folder, each as PEM. */
function storedAuthorities(folder: string): string[] {
  const files = readdirSync(folder).filter((name) => /^certificate(-[0-9a-f]+)?\.json$/.test(name));
  return files.flatMap((name) => {
    try {
      return authoritiesIn((JSON.parse(readText(join(folder, name))) as ServerCertificate).ca);
    } catch {
      // The file is incomplete. Its server creates a new one.
      return [];
    }
  });
}

function authoritiesIn(text: string): string[] {
  return [...text.matchAll(/-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g)].map(
    ([pem]) => `${pem}\n`,
  );
}

/** Returns the content of a file; empty if the file does not exist. */
function readText(file: string): string {
  try {
    return readFileSync(file, 'utf8');
  } catch {
    return '';
  }
}

/** Creates a certificate for the loopback hosts and `hosts`, and an authority that signs only this certificate. */
export async function makeCertificate(options: CertificateOptions): Promise<ServerCertificate> {
  // Imported on demand, because it loads slowly and most starts find a stored certificate.
  const { issueCertificate } = await import('./issue-certificate.ts');
  return issueCertificate({ ...options, hosts: allHosts(options) });
}

function allHosts({ hosts = [] }: CertificateOptions): string[] {
  return [...new Set([...loopbackHosts, ...hosts])];
}
