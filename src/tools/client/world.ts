import { readFile, writeFile } from 'node:fs/promises';
import { gunzipSync, gzipSync } from 'node:zlib';
import { StartError } from '../../config/start-error.ts';
import type {
  AddSandboxFaultRequest,
  FundSandboxAddressRequest,
  LoadedSnapshot,
  RemovedSandboxFaults,
  SandboxAggregation,
  SandboxAggregations,
  SandboxBlocks,
  SandboxClock,
  SandboxDeposit,
  SandboxFault,
  SandboxFaults,
  SandboxPool,
  SandboxPools,
  SandboxReset,
  SandboxScenario,
  SandboxScenarioRun,
  SandboxScenarios,
  SandboxSession,
  SandboxSnapshot,
  SandboxSnapshots,
  SandboxUpcoming,
  SandboxUpcomingEntry,
  SetSandboxClockRequest,
  SnapshotContent,
} from '../../sandbox/generated/schemas.ts';
import type { SandboxClient } from './sandbox-client.ts';

export type {
  FundSandboxAddressRequest,
  SandboxAggregation,
  SandboxClock,
  SandboxDeposit,
  SandboxPool,
  SandboxSnapshot,
  SandboxUpcomingEntry,
  SetSandboxClockRequest,
};

// Calls the control plane's operations on the whole state of a sandbox.

/** Resets the sandbox to the state after its start. */
export function resetSandbox(client: SandboxClient): Promise<SandboxReset> {
  return client.call('POST', '/reset');
}

export function readClock(client: SandboxClient): Promise<SandboxClock> {
  return client.call('GET', '/clock');
}

export function changeClock(client: SandboxClient, body: SetSandboxClockRequest): Promise<SandboxClock> {
  return client.call('PUT', '/clock', { body });
}

/**
 * Starts a session of a user.
 *
 * @param user an id, email address, phone number or custom user id.
 * @param appId by default, the sandbox's own app.
 */
export function signIn(
  client: Pick<SandboxClient, 'call'>,
  user: string,
  appId?: string | undefined,
): Promise<SandboxSession> {
  const query = appId === undefined ? '' : `?app_id=${encodeURIComponent(appId)}`;
  return client.call('POST', `/users/${encodeURIComponent(user)}/session${query}`);
}

/** Returns the upcoming events of the sandbox, earliest first. */
export async function listUpcoming(client: SandboxClient): Promise<readonly SandboxUpcomingEntry[]> {
  return (await client.call<SandboxUpcoming>('GET', '/clock/upcoming')).data;
}

/**
 * Moves the clock to the next time at which something is due.
 *
 * @throws StartError if nothing is due.
 */
export async function advanceToNext(client: SandboxClient): Promise<SandboxClock> {
  const [next] = await listUpcoming(client);
  if (next === undefined) throw new StartError('nothing is planned, so there is nothing to advance to');
  return changeClock(client, { now_ms: next.at_ms });
}

export function mineBlocks(
  client: SandboxClient,
  body: { readonly chain?: string; readonly count?: number },
): Promise<SandboxBlocks> {
  return client.call('POST', '/blocks', { body });
}

/** Lists the liquidity pools of a chain, of all chains in use, or those in which a transaction traded. */
export async function listPools(
  client: SandboxClient,
  filter: { readonly chain?: string | undefined; readonly transaction_hash?: string | undefined },
): Promise<SandboxPool[]> {
  const given = Object.entries(filter).filter((pair): pair is [string, string] => pair[1] !== undefined);
  const { data } = await client.call<SandboxPools>('GET', `/pools?${new URLSearchParams(given)}`);
  return data;
}

/** Adds funds to an address, or to a wallet's address. */
export async function fund(
  client: SandboxClient,
  recipient: string,
  deposit: Omit<FundSandboxAddressRequest, 'address'>,
): Promise<SandboxDeposit> {
  const address = isWalletId(recipient) ? await addressOf(client, recipient) : recipient;
  return client.call('POST', '/faucet', { body: { ...deposit, address } });
}

/** Returns whether a string is the id of a wallet. Addresses have other lengths, or contain upper-case letters. */
function isWalletId(text: string): boolean {
  return /^([a-z0-9]{24}|ext_wal_.+)$/.test(text);
}

async function addressOf(client: SandboxClient, walletId: string): Promise<string> {
  const { appId, appSecret, prefix } = client.place();
  const { status, text } = await client.send({
    method: 'GET',
    target: `/v1/wallets/${encodeURIComponent(walletId)}`,
    headers: {
      authorization: `Basic ${Buffer.from(`${appId}:${appSecret}`).toString('base64')}`,
      [`${prefix}-app-id`]: appId,
    },
    bodyText: undefined,
  });
  const body = JSON.parse(text) as { readonly address: string; readonly error?: string };
  if (status !== 200) throw new StartError(`\`${walletId}\`: ${body.error}`);
  return body.address;
}

export async function listSnapshots(client: SandboxClient): Promise<readonly SandboxSnapshot[]> {
  return (await client.call<SandboxSnapshots>('GET', '/snapshots')).data;
}

/**
 * Saves a snapshot, and writes it to a file if one is given.
 *
 * @param requestsAfter the position after which recorded requests are added to the file. Undefined adds none.
 */
export async function saveSnapshot(
  client: SandboxClient,
  name: string,
  file: string | undefined,
  requestsAfter?: string,
): Promise<SandboxSnapshot> {
  const saved = await client.call<SandboxSnapshot>('POST', '/snapshots', { body: { name } });
  if (file !== undefined) {
    const query = requestsAfter === undefined ? '' : `?requests_after=${encodeURIComponent(requestsAfter)}`;
    const { content } = await client.call<SnapshotContent>('GET', `${pathOf(name)}/content${query}`);
    // The file contains keys, so only its owner can read it.
    await writeFile(file, gunzipSync(Buffer.from(content, 'base64')), { mode: 0o600 });
  }
  return saved;
}

/** Loads a snapshot. A snapshot from a file replaces the one with the same name. */
export async function loadSnapshot(
  client: SandboxClient,
  name: string,
  file: string | undefined,
): Promise<LoadedSnapshot> {
  if (file !== undefined) {
    const content = gzipSync(await readFile(file)).toString('base64');
    await client.call('PUT', pathOf(name), { body: { content } });
  }
  return client.call('POST', `${pathOf(name)}/load`);
}

export async function removeSnapshot(client: SandboxClient, name: string): Promise<void> {
  await client.call('DELETE', pathOf(name));
}

function pathOf(name: string): string {
  return `/snapshots/${encodeURIComponent(name)}`;
}

export type { AddSandboxFaultRequest, SandboxFault };

export function addFault(client: SandboxClient, body: AddSandboxFaultRequest): Promise<SandboxFault> {
  return client.call<SandboxFault>('POST', '/faults', { body });
}

/**
 * Adds all rules, or none if the sandbox refuses one of them.
 *
 * @throws ConfigError, StartError
 */
export async function addFaults(
  client: SandboxClient,
  bodies: readonly AddSandboxFaultRequest[],
): Promise<readonly SandboxFault[]> {
  const added: SandboxFault[] = [];
  try {
    for (const body of bodies) added.push(await addFault(client, body));
    return added;
  } catch (error) {
    if (added.length > 0)
      await removeFaults(
        client,
        added.map(({ id }) => id),
      );
    throw error;
  }
}

/** Lists the fault rules, in the order in which they are tried. */
export async function listFaults(client: SandboxClient): Promise<readonly SandboxFault[]> {
  return (await client.call<SandboxFaults>('GET', '/faults')).data;
}

/** Lists the newest aggregations with their current sums, at most 1,000. */
export async function listAggregations(client: SandboxClient): Promise<readonly SandboxAggregation[]> {
  return (await client.call<SandboxAggregations>('GET', '/aggregations?limit=1000')).data;
}

/** Removes the rules with these ids, or all rules if no id is given. Returns the number of removed rules. */
export async function removeFaults(client: SandboxClient, ids: readonly string[]): Promise<number> {
  if (ids.length === 0) return (await client.call<RemovedSandboxFaults>('DELETE', '/faults')).removed;
  for (const id of ids) await client.call<SandboxFault>('DELETE', `/faults/${encodeURIComponent(id)}`);
  return ids.length;
}

interface RecordedEntry {
  readonly _operationId?: string | null;
  readonly response?: {
    readonly status?: number;
    readonly headers?: readonly { readonly name: string; readonly value: string }[];
    readonly content?: { readonly text?: string };
  };
}

/**
 * The response headers that are not replayed. The server sets them itself, or they belong to one connection or one
 * request. Others describe a compressed body, but recorded bodies are not compressed.
 */
const NOT_REPLAYED =
  /^(connection|content-encoding|content-length|date|keep-alive|server|set-cookie|strict-transport-security|transfer-encoding|x-request-id)$/i;

/**
 * Reads the responses in an HTTP Archive, each as a rule that sends it once.
 *
 * CHOICE: a recording is replayed unchanged, even where it differs from the API document. `custos verify` reports
 * such differences.
 *
 * @throws StartError for a file that is not an HTTP Archive, or that contains no response of an operation.
 */
export async function recordedResponses(
  file: string,
  operation: string | undefined,
): Promise<readonly AddSandboxFaultRequest[]> {
  const text = await readFile(file, 'utf8');
  let entries: readonly RecordedEntry[] | undefined;
  try {
    ({ entries } = (JSON.parse(text) as { log: { entries?: readonly RecordedEntry[] } }).log);
  } catch {
    entries = undefined;
  }
  if (!Array.isArray(entries))
    throw new StartError(`\`${file}\`: expected an HTTP Archive with \`log.entries\``);
  const rules = (entries as readonly RecordedEntry[]).flatMap(({ _operationId: id, response }) => {
    const isMeant = typeof id === 'string' && (operation === undefined || operation === id);
    const status = response?.status ?? 0;
    if (!isMeant || response === undefined || status < 200) return [];
    return [
      {
        effect: 'respond' as const,
        operation: id,
        status,
        ...contentOf(response),
        count: 1,
        is_undocumented: true,
      },
    ];
  });
  if (rules.length > 0) return rules;
  const which = operation === undefined ? 'an operation of the API' : `\`${operation}\``;
  throw new StartError(`\`${file}\`: expected a response of ${which}, got none`);
}

function contentOf({ headers = [], content }: NonNullable<RecordedEntry['response']>) {
  const kept = headers.filter(({ name }) => !NOT_REPLAYED.test(name));
  const own = { headers: Object.fromEntries(kept.map(({ name, value }) => [name.toLowerCase(), value])) };
  const { text } = content ?? {};
  if (text === undefined || text === '') return own;
  try {
    return { ...own, body: JSON.parse(text) as unknown };
  } catch {
    return { ...own, body: text };
  }
}

export type { SandboxScenarioRun };

/** Lists the scenarios that `runScenario` can run. */
export async function listScenarios(client: SandboxClient): Promise<readonly SandboxScenario[]> {
  return (await client.call<SandboxScenarios>('GET', '/scenarios')).data;
}

export function runScenario(client: SandboxClient, name: string): Promise<SandboxScenarioRun> {
  return client.call<SandboxScenarioRun>('POST', `/scenarios/${encodeURIComponent(name)}`);
}
