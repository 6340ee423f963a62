import { X509Certificate } from 'node:crypto';
import { lookup } from 'node:dns/promises';
import { accessSync, constants, readFileSync, statfsSync, statSync } from 'node:fs';
import { isIP } from 'node:net';
import { dirname } from 'node:path';
import { connectChains } from '../../adapters/chain-rpc/connect.ts';
import { silentLog } from '../../adapters/log.ts';
import { systemClock } from '../../adapters/runtime.ts';
import { createWebhookSender, nameServerLookup, publicHttpsOnly } from '../../adapters/webhook-http.ts';
import type { CellSettings } from '../../config/cells.ts';
import type { ServeConfig } from '../../config/config.ts';
import { settings } from '../../config/settings.ts';
import type { KeyStoreSettings } from '../../config/signer.ts';
import { type EcBackend, ecBackend } from '../../engine/crypto/secp256k1.ts';
import { type Finding, fault, ok, warning } from '../../tools/findings.ts';
import { checkDatabase } from './check-database.ts';
import { checkDirectory } from './check-directory.ts';

/** Checks all requirements of `custos serve`, in parallel. Changes nothing. */
export async function examineProduction(
  config: ServeConfig,
  outside: {
    /** Selects the signer or the master keys that opens the stored keys. */
    readonly keyStore: KeyStoreSettings;
    readonly env: Readonly<Record<string, string | undefined>>;
    readonly execArgv: readonly string[];
    readonly folder: string;
    /** The URL that receives a test request, sent in the way webhooks are sent. */
    readonly webhookUrl: string | undefined;
  },
): Promise<Finding[]> {
  const hasCells = config.cells.directoryUrl !== undefined;
  const examineCell = async (cell: CellSettings): Promise<Finding[]> => {
    const findings = [...(await checkDatabase(config, cell, outside.keyStore)), checkCheckpoint(cell)];
    return hasCells ? findings.map((each) => ({ ...each, name: `${cell.name}: ${each.name}` })) : findings;
  };
  const findings = await Promise.all([
    checkTls(config),
    checkPublicUrls(config),
    checkNodes(config),
    checkEgress(outside.webhookUrl),
    checkProcess(config, outside),
    checkDisk(outside.folder),
    checkCurve(ecBackend),
    checkDirectory(config.cells),
    ...config.cells.cells.map(examineCell),
  ]);
  return findings.flat();
}

const DAY_MS = 86_400_000;
const RENEW_DAYS = 21;
const LOW_SPACE_BYTES = 500 * 1024 * 1024;
const LOOKUP_MS = 3_000;

/** Checks the certificate that clients see. */
function checkTls({ tls, publicUrls }: Pick<ServeConfig, 'tls' | 'publicUrls'>): Finding[] {
  if (tls === undefined) return [ok('TLS', `a proxy terminates it (${settings.trustProxy.variable})`)];
  const certificate = new X509Certificate(tls.cert);
  const until = certificate.validToDate;
  const days = Math.floor((until.getTime() - systemClock.now()) / DAY_MS);
  const text = `the certificate is valid until ${until.toISOString().slice(0, 10)}`;
  const expiry =
    days < 0
      ? fault(
          'TLS',
          `the certificate expired on ${until.toISOString().slice(0, 10)}`,
          'renew it, and restart',
        )
      : days < RENEW_DAYS
        ? warning('TLS', `${text}, for ${days} days`, 'renew it, and restart the server')
        : ok('TLS', text);
  const foreign = publicUrls
    .map((url) => new URL(url).hostname.replace(/^\[|\]$/g, ''))
    .filter(
      (host) => (isIP(host) === 0 ? certificate.checkHost(host) : certificate.checkIP(host)) === undefined,
    );
  return [
    expiry,
    ...foreign.map((host) =>
      warning(
        'TLS',
        `the certificate is not for \`${host}\``,
        'unless a proxy in front has one, issue it again',
      ),
    ),
  ];
}

/** Checks the URLs that clients use. */
async function checkPublicUrls({ publicUrls }: Pick<ServeConfig, 'publicUrls'>): Promise<Finding[]> {
  return Promise.all(publicUrls.map(checkPublicUrl));
}

async function checkPublicUrl(text: string): Promise<Finding> {
  const { protocol, hostname } = new URL(text);
  if (protocol !== 'https:')
    return fault('public URL', `\`${text}\` is not HTTPS`, 'clients sign this URL: name the HTTPS one');
  const timer = AbortSignal.timeout(LOOKUP_MS);
  const late = new Promise<never>((_, reject) => timer.addEventListener('abort', () => reject(timer.reason)));
  try {
    const { address } = await Promise.race([lookup(hostname.replace(/^\[|\]$/g, '')), late]);
    return ok('public URL', `\`${text}\` resolves to ${address}`);
  } catch {
    return warning(
      'public URL',
      `\`${text}\` does not resolve on this machine`,
      'clients must be able to resolve it; this machine need not',
    );
  }
}

type Environment = Readonly<Record<string, string | undefined>>;

/** Finds settings of the process that weaken its security. */
function checkProcess(
  config: Pick<ServeConfig, 'connections'>,
  { env, execArgv }: { readonly env: Environment; readonly execArgv: readonly string[] },
): Finding[] {
  const flags = [...execArgv, ...(env.NODE_OPTIONS ?? '').split(/\s+/)];
  const findings: Finding[] = [];
  if (flags.some((flag) => /^--inspect/.test(flag)))
    findings.push(fault('Node flags', '--inspect opens a debugger that can read keys', 'remove the flag'));
  if (flags.some((flag) => /^--heapsnapshot|^--heap-prof|^--abort-on-uncaught/.test(flag)))
    findings.push(warning('Node flags', 'dumps of the memory may contain secrets', 'remove the flag'));
  if (env.NODE_TLS_REJECT_UNAUTHORIZED === '0')
    findings.push(
      fault(
        'Node flags',
        'NODE_TLS_REJECT_UNAUTHORIZED=0 accepts every certificate',
        'unset it; see NODE_EXTRA_CA_CERTS',
      ),
    );
  if (env.NODE_DEBUG !== undefined)
    findings.push(warning('Node flags', 'NODE_DEBUG writes requests to standard error', 'unset it'));
  const proxy = ['HTTPS_PROXY', 'https_proxy', 'HTTP_PROXY', 'http_proxy'].find(
    (name) => env[name] !== undefined,
  );
  if (proxy !== undefined)
    findings.push(
      warning(
        'egress',
        `${proxy} is set, but webhooks and nodes are called directly`,
        'allow direct HTTPS, or unset it',
      ),
    );
  if (findings.length === 0) findings.push(ok('Node flags', 'none that weaken the server'));
  return [...findings, ...fileLimit(config), ...keyFile(env)];
}

/**
 * Checks whether the native library for secp256k1, the curve of Ethereum, Bitcoin and most other chains, has loaded.
 */
export function checkCurve({ name }: Pick<EcBackend, 'name'>): Finding {
  if (name === 'native') return ok('secp256k1', 'libsecp256k1 signs');
  return warning(
    'secp256k1',
    'libsecp256k1 does not load here, so signing in JavaScript takes 2.4 times the CPU',
    'use Linux or Windows on x64 or macOS on arm64, for which this package has a binary',
  );
}

function fileLimit({ connections }: Pick<ServeConfig, 'connections'>): Finding[] {
  const limit = openFileLimit();
  if (limit === undefined) return [];
  const text = `${limit} open files for ${connections.total} connections`;
  if (limit > connections.total) return [ok('file limit', text)];
  return [warning('file limit', text, `raise \`ulimit -n\`, or lower ${settings.maxConnections.variable}`)];
}

/** Returns the limit of open files, or undefined on systems without `/proc`. */
function openFileLimit(): number | undefined {
  try {
    const found = /^Max open files\s+(\d+)/m.exec(readFileSync('/proc/self/limits', 'utf8'));
    return found === null ? undefined : Number(found[1]);
  } catch {
    return undefined;
  }
}

/** Checks who can read the master key. */
function keyFile(env: Environment): Finding[] {
  const file = env[`${settings.masterKey.variable}_FILE`];
  if (file === undefined) return [];
  const isOpen = (statSync(file).mode & 0o077) !== 0;
  if (!isOpen) return [ok('key file', 'only its owner can read it')];
  return [warning('key file', `other users can read \`${file}\``, `chmod 600 ${file}`)];
}

/**
 * Checks that a server can write its checkpoint. With it, the server notices at its next start that the audit log was
 * cut.
 */
export function checkCheckpoint({ checkpointFile: file }: Pick<CellSettings, 'checkpointFile'>): Finding {
  const name = 'audit log';
  if (file === undefined) {
    const text = `${settings.checkpointFile.variable} is not set: a server that starts does not notice that the log was cut`;
    return warning(name, text, 'name a file on a disk that administrators of the database cannot write to');
  }
  try {
    accessSync(dirname(file), constants.W_OK);
    return ok(name, `its last checkpoint is kept in \`${file}\``);
  } catch (error) {
    const text = `its last checkpoint cannot be kept in \`${file}\` (${(error as NodeJS.ErrnoException).code})`;
    return fault(name, text, 'create the folder, and let the user of the server write there');
  }
}

/** Checks the disk to which the log and the dumps of the process are written. */
function checkDisk(folder: string): Finding {
  const { bavail, bsize } = statfsSync(folder);
  const text = `${Math.floor((bavail * bsize) / (1024 * 1024))} MB are free in \`${folder}\``;
  return bavail * bsize >= LOW_SPACE_BYTES ? ok('disk', text) : warning('disk', text, 'make space');
}

const RPC = settings.rpc.variable;
const STALE_SECONDS = 600;
const WEBHOOK_MS = 10_000;

/** Checks that each node responds, belongs to the chain, and is up to date. */
async function checkNodes({ rpc }: Pick<ServeConfig, 'rpc'>): Promise<Finding[]> {
  if (rpc.length === 0) return [ok('nodes', `no chain is configured (${RPC})`)];
  const nodes = rpc.flatMap(({ caip2, urls }) => urls.map((url) => ({ caip2, url })));
  const findings = await Promise.all(nodes.map(checkNode));
  const alone = rpc.filter(({ urls }) => urls.length === 1).map(({ caip2 }) => caip2);
  if (alone.length === 0) return findings;
  const text = `${alone.join(', ')}: one node decides alone about fees and nonces`;
  return [...findings, warning('nodes', text, `list nodes of different providers in ${RPC}`)];
}

async function checkNode({ caip2, url }: { caip2: string; url: string }): Promise<Finding> {
  // Only the host is shown, because the path may contain an API key.
  const name = `${caip2}, ${new URL(url).host}`;
  const chain = connectChains([{ caip2, urls: [url] }], silentLog).find(caip2);
  try {
    const latest =
      chain?.kind === 'evm' || chain?.kind === 'solana' ? await chain.latestSeconds?.() : undefined;
    if (latest === undefined) return warning('nodes', `${name}: unknown kind of chain`, 'remove it');
    const age = Math.max(0, Math.round(systemClock.now() / 1000 - latest));
    const text = `${name}: the latest block is ${age} s old`;
    return age < STALE_SECONDS
      ? ok('nodes', text)
      : warning('nodes', text, 'the node lags behind; replace it');
  } catch (error) {
    return fault('nodes', `${name}: ${(error as Error).message}`, `correct or replace it in ${RPC}`);
  }
}

/** Sends one test request as webhooks are sent, unless `url` is undefined. */
async function checkEgress(url: string | undefined): Promise<Finding[]> {
  if (url === undefined) return [];
  const sender = createWebhookSender({ guard: publicHttpsOnly, lookup: nameServerLookup() });
  const unfit = sender.urlFault(url);
  if (unfit !== undefined) return [fault('egress', `\`${url}\`: ${unfit}`, 'name a public HTTPS URL')];
  const event = { type: 'doctor', appId: 'doctor' };
  const { status, failure } = await sender.send({
    url,
    headers: {},
    bodyText: '{}',
    event,
    timeoutMs: WEBHOOK_MS,
  });
  await sender.close();
  if (failure === undefined) return [ok('egress', `\`${url}\` was reached and responded with ${status}`)];
  const advice = 'webhooks need direct HTTPS to the internet and name servers that resolve public names';
  return [fault('egress', `\`${url}\` cannot be reached: ${failure}`, advice)];
}
