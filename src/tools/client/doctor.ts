import { X509Certificate } from 'node:crypto';
import { accessSync, constants, existsSync, readFileSync, statfsSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { temporaryCertificateFolder } from '../../adapters/certificate.ts';
import { requireFreePort } from '../../adapters/own-server.ts';
import { systemClock } from '../../adapters/runtime.ts';
import { proxyVariables } from '../../config/client.ts';
import { type Finding, fault, ok, warning } from '../findings.ts';
import type { RunningSandboxFile } from './running-sandboxes.ts';
import { SandboxUnavailableError } from './sandbox-address.ts';
import { openSandboxClient } from './sandbox-client.ts';

const OLDEST_NODE = 24;

/** Less free space than this is reported. A sandbox with many users writes some tens of megabytes. */
const LOW_SPACE_BYTES = 200 * 1024 * 1024;

export function checkNode(version: string): Finding {
  const isRecent = Number(version.split('.')[0]) >= OLDEST_NODE;
  if (isRecent) return ok('Node.js', version);
  return fault('Node.js', `${version} is too old`, `install Node.js ${OLDEST_NODE} or newer`);
}

/** Checks that the port is free, or that a sandbox already listens on it. */
export async function checkPort(
  { host, port }: { readonly host: string; readonly port: number },
  running: readonly RunningSandboxFile[],
): Promise<Finding> {
  const own = running.find(({ base_url: url }) => Number(new URL(url).port) === port);
  if (own !== undefined) return ok('port', `${port} is that of the running sandbox (process ${own.pid})`);
  const failure = await requireFreePort(host, port).catch((error: NodeJS.ErrnoException) => error);
  if (failure === undefined) return ok('port', `${port} is free`);
  if (failure.code === 'EADDRINUSE') {
    return fault(
      'port',
      `${port} is used by another program`,
      'stop it, or choose another port with --port (0 selects a free one)',
    );
  }
  if (failure.code === 'EACCES')
    return fault('port', `no permission to listen on ${port}`, 'choose one above 1023 with --port');
  return fault('port', failure.message, 'choose another address with --host');
}

/** Checks the certificate authority that clients trust. */
export function checkCertificate(data: string | undefined): Finding {
  const file = join(data ?? temporaryCertificateFolder(), 'ca.pem');
  if (!existsSync(file)) return ok('certificate', 'none yet; the first start of a sandbox creates it');
  try {
    const authority = new X509Certificate(readFileSync(file));
    const until = authority.validToDate;
    if (until.getTime() > systemClock.now())
      return ok('certificate', `\`${file}\` is valid until ${until.toISOString().slice(0, 10)}`);
    return warning('certificate', `\`${file}\` has expired`, 'start the sandbox again, which renews it');
  } catch (error) {
    return fault(
      'certificate',
      `\`${file}\` cannot be used: ${(error as Error).message}`,
      'delete the file and start the sandbox again',
    );
  }
}

/** Checks whether a sandbox can write to its data folder, and how much space is free there. */
export function checkFolder(data: string): Finding {
  const folder = resolve(data);
  const existing = nearestExisting(folder);
  try {
    accessSync(existing, constants.W_OK | constants.X_OK);
  } catch (error) {
    const { code = '' } = error as NodeJS.ErrnoException;
    const reason = code === 'EROFS' ? 'is on a read-only file system' : 'is not writable';
    return fault(
      'data folder',
      `\`${existing}\` ${reason}`,
      'make it writable, or choose another with --data',
    );
  }
  const { bavail, bsize } = statfsSync(existing);
  const free = bavail * bsize;
  const text = `\`${folder}\` is writable, ${Math.floor(free / (1024 * 1024))} MB are free`;
  if (free >= LOW_SPACE_BYTES) return ok('data folder', text);
  return warning('data folder', text, 'make space; a full disk makes the sandbox refuse writes with 503');
}

function nearestExisting(folder: string): string {
  return existsSync(folder) || dirname(folder) === folder ? folder : nearestExisting(dirname(folder));
}

/** Checks whether a proxy is configured for addresses on this machine. A proxy cannot reach a sandbox here. */
export function checkProxy(): Finding {
  const [first] = proxyVariables('127.0.0.1');
  if (first === undefined) return ok('proxy', 'none for 127.0.0.1');
  return warning(
    'proxy',
    `${first} is set`,
    'clients that read it send requests for the sandbox there: export NO_PROXY=127.0.0.1,localhost',
  );
}

const TIMEOUT_MS = 3_000;

/** Checks each running sandbox: whether it responds, its version, and whether its clock is frozen. */
export async function checkSandboxes(
  running: readonly RunningSandboxFile[],
  version: string,
): Promise<Finding[]> {
  if (running.length === 0) return [ok('sandbox', 'none is running; start one with `custos sandbox`')];
  const findings = await Promise.all(running.map((each) => checkSandbox(each, version)));
  return findings.flat();
}

async function checkSandbox(
  { base_url: url, ca_file: caFile, version: its, pid, data }: RunningSandboxFile,
  version: string,
): Promise<Finding[]> {
  const client = openSandboxClient({ url, caFile });
  try {
    const clock = await client.call<{ now: string; frozen: boolean }>('GET', '/clock', {
      timeoutMs: TIMEOUT_MS,
    });
    const where = `${url} (process ${pid}, ${data === null ? 'in memory' : `data in \`${data}\``})`;
    const sandbox =
      its === version
        ? ok('sandbox', `${where} is version ${its}`)
        : warning('sandbox', `${where} is version ${its}, this is ${version}`, 'stop it and start it again');
    return [sandbox, clockFinding(clock)];
  } catch (error) {
    const advice = `end process ${pid} and start the sandbox again`;
    const reason = error instanceof SandboxUnavailableError ? '' : `: ${(error as Error).message}`;
    return [fault('sandbox', `${url} does not respond${reason}`, advice)];
  } finally {
    client.close();
  }
}

function clockFinding({ now, frozen }: { readonly now: string; readonly frozen: boolean }): Finding {
  if (!frozen) return ok('clock', `${now}, running`);
  return warning('clock', `frozen at ${now}`, 'nothing becomes due until it moves: custos clock resume');
}
