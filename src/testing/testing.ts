import { fetch as fetchWith } from 'undici';
import { startSandbox as compose } from '../compose/sandbox.ts';
import { coverageFolder } from '../config/client.ts';
import { readSandboxConfig, type SandboxConfig } from '../config/config.ts';
import { type ConfigFile, findConfigFile, readConfigFile, withoutPlaces } from '../config/config-file.ts';
import type { RawWalletAuthenticateResponse } from '../generated/schemas.ts';
import type {
  AddSandboxFaultRequest,
  FundSandboxAddressRequest,
  SandboxDeposit,
  SandboxEvent,
  SandboxFault,
  SandboxSession,
} from '../sandbox/generated/schemas.ts';
import { awaitEvent, listFeed } from '../tools/client/feeds.ts';
import {
  addFault,
  changeClock,
  fund,
  listFaults,
  loadSnapshot,
  mineBlocks,
  readClock,
  removeFaults,
  resetSandbox,
  saveSnapshot,
  signIn,
} from '../tools/client/world.ts';
import { callerOf } from './caller.ts';
import { type Connection, connect, trustInProcess } from './connection.ts';
import { collectorIn, keepState, newestPosition } from './keep.ts';
import { playScenario } from './scenarios.ts';
import type { Caller, RunOptions, ScenarioResult, Signer } from './types.ts';

import { nearMisses } from './types.ts';

export {
  type Answer,
  alice,
  bob,
  type Caller,
  type CallInput,
  type CallOptions,
  CallRefusedError,
  carol,
  type OperationId,
  type Operations,
  type Refusal,
  ScenarioFailedError,
  type ScenarioResult,
  type ScenarioStep,
  type Signer,
} from './types.ts';

/** Options for starting a sandbox. Each corresponds to an option of `custos sandbox`. */
export interface StartOptions {
  /**
   * The path of a configuration file, or false for none. Default: `custos.config.json` in the current folder, if there
   * is one. Options take precedence over it. Its port and its data folder are ignored.
   */
  readonly config?: string | false;
  /** Makes ids, keys and addresses equal in every run. Default: `test`. */
  readonly seed?: string | undefined;
  /**
   * `now`: the clock starts at the machine's time and runs. `frozen`: it stands still at the start of 2026. A `Date`:
   * it stands still at that time. With a clock that stands still, equal calls have equal responses in every run, byte
   * for byte. Default: `now`.
   */
  readonly clock?: 'now' | 'frozen' | Date;
  /** Creates named users, wallets, key quorums, a policy and a vault. Default: true. */
  readonly seedData?: boolean;
  /**
   * Gives the seeded wallets gas and stablecoins: ten wallets, on EVM chains, Solana and Tron, instead of four.
   * Default: false.
   */
  readonly funds?: boolean;
  /** Gives each new wallet gas and stablecoins. Default: false. */
  readonly fundNewWallets?: boolean;
  /** The snapshot file to start with. Resets return to it. */
  readonly load?: string;
  readonly prefix?: string;
  readonly appId?: string;
  readonly appSecret?: string;
  /** Whether requests are recorded for `/_sandbox/requests`. Default: true. */
  readonly record?: boolean;
  /** Whether error responses contain a hint in `data.hint`. Default: true. */
  readonly hints?: boolean;
  /** Default: any free port. */
  readonly port?: number;
  /** A port for JSON-RPC over plain HTTP and WebSocket. 0 selects a free port. Default: none. */
  readonly rpcPort?: number;
  /** Simulated EVM chains that fork a real chain, at the given block or else at its latest. */
  readonly forks?: readonly { readonly caip2: string; readonly url: string; readonly block?: number }[];
  /**
   * The time after which each transaction on simulated chains is confirmed; 0 means immediately. Default: with the
   * next block.
   */
  readonly confirmAfterMs?: number;
}

/**
 * Controls the clock of a sandbox, in Unix ms. A change resolves once everything that is due by the new time has run.
 */
export interface TestClock {
  now(): Promise<number>;
  freeze(): Promise<number>;
  resume(): Promise<number>;
  set(time: number | Date): Promise<number>;
  advance(durationMs: number): Promise<number>;
}

/** Injects faults. A reset removes all rules. */
export interface TestFaults {
  add(rule: AddSandboxFaultRequest): Promise<SandboxFault>;
  list(): Promise<readonly SandboxFault[]>;
  clear(): Promise<number>;
}

/** Criteria that select events. */
export interface EventFilter {
  /** The values of members of the payload, by path, such as `{ wallet_id: '…', 'account.type': 'email' }`. */
  readonly where?: Readonly<Record<string, string | number | boolean>>;
  /** Selects only events after the event with this id. */
  readonly after?: string;
}

/** A sandbox in this process. Its own `call` and `attempt` authenticate with the app's secret and add no signatures. */
export interface TestSandbox extends Caller, AsyncDisposable {
  readonly baseUrl: string;
  readonly appId: string;
  readonly appSecret: string;
  /** The certificate authority, as PEM and as the path of a file. */
  readonly caPem: string;
  readonly caFile: string;
  /** The base URL of the JSON-RPC of simulated EVM chains. Append a slash and the name of a chain. */
  readonly rpcUrl: string;
  /** Returns a caller that adds the signatures of these keys to operations that accept signatures. */
  as(...signers: readonly Pick<Signer, 'privateKey'>[]): Caller;
  /**
   * Signs in as a user, given by id, email address, phone number or custom user id. The session calls operations with
   * the user's access token.
   */
  signIn(user: string): Promise<UserSession>;
  /** A `fetch` that trusts the sandbox. */
  readonly fetch: typeof globalThis.fetch;
  /**
   * Makes all TLS connections of this process trust the sandbox: `fetch`, `https`, and clients that are built on
   * them.
   */
  trust(): void;
  /** Resets the sandbox to the state after its start. */
  reset(): Promise<void>;
  /**
   * Writes the whole state, the events and the requests since the last reset to a file, which `custos inspect` opens.
   * The requests are also written to an HTTP Archive beside it. The files contain keys.
   */
  keep(file: string): Promise<void>;
  /**
   * Hands the requests so far to the reporter `custos/testing/reporter`, if it runs. A reset, the fixtures and `close`
   * do this as well.
   */
  collect(): Promise<void>;
  /** Saves the whole state under a name, for `load`. */
  snapshot(name: string): Promise<void>;
  load(name: string): Promise<void>;
  readonly clock: TestClock;
  readonly faults: TestFaults;
  /** Adds funds to an address, or to a wallet given by its id. */
  faucet(recipient: string, deposit: Omit<FundSandboxAddressRequest, 'address'>): Promise<SandboxDeposit>;
  /** Mines blocks on one simulated chain, or on all chains in use. */
  mine(count?: number, chain?: string): Promise<void>;
  /** Runs everything that is due, and waits for the responses of webhook endpoints. */
  settle(): Promise<void>;
  /**
   * Runs a scenario by name, such as `quorum-short`, or an Arazzo document by its file.
   *
   * @throws ScenarioFailedError if a step of a file fails.
   */
  runScenario(nameOrFile: string, options?: RunOptions): Promise<ScenarioResult>;
  /** Returns the events so far, oldest first. */
  events(type?: string, filter?: EventFilter): Promise<readonly SandboxEvent[]>;
  /**
   * Waits for the first event of a type, and returns it immediately if it was already recorded. Rejects after
   * `timeoutMs`, by default 5000.
   */
  waitForEvent(type: string, filter?: EventFilter & { readonly timeoutMs?: number }): Promise<SandboxEvent>;
  close(): Promise<void>;
}

/**
 * A session of a user. Its `call` and `attempt` send the user's access token to operations that accept one, and the
 * app's secret to all others.
 */
export interface UserSession extends Caller {
  readonly userId: string;
  readonly sessionId: string;
  readonly accessToken: string;
  readonly refreshToken: string;
  readonly identityToken: string;
  /**
   * A token of the app's own login, which the sandbox simulates. Undefined if the user has no custom account, or if
   * the app uses another login.
   */
  readonly customToken: string | undefined;
  /** When the access token expires, in Unix ms by the sandbox's clock. */
  readonly expiresAtMs: number;
  /**
   * Creates a key that can sign as the user for an hour: `sandbox.as(await session.signer())`.
   *
   * @throws CallRefusedError for a user without a wallet.
   */
  signer(): Promise<Pick<Signer, 'privateKey'>>;
}

const WAIT_FOR_EVENT_MS = 5_000;

/** Starts a complete sandbox in this process, with its data in memory: `await using sandbox = await startSandbox()`. */
export async function startSandbox(options: StartOptions = {}): Promise<TestSandbox> {
  const { config: path, clock, ...given } = options;
  const file = fileOf(path);
  const settings: Partial<SandboxConfig> = {
    ...{ seed: 'test', seedData: true, record: true, prefix: 'service' },
    ...(file && settingsOf(file)),
    ...{ port: 0, ...given, logLevel: 'silent' },
    ...(clock === undefined ? {} : { clock: clock instanceof Date ? clock.getTime() : clock }),
    // The process runs tests. Preparing keys in each of its sandboxes would slow them down.
    preparedKeys: 0,
  };
  const sandbox = await compose(settings);
  const connection = connect(sandbox, settings.prefix!);
  const isRecording = settings.record!;
  const folder = isRecording ? coverageFolder() : undefined;
  const collector = folder === undefined ? undefined : collectorIn(folder, connection);
  let startedAt = 'start';
  const close = async (): Promise<void> => {
    try {
      await collector?.collect();
    } finally {
      await connection.destroy().finally(() => sandbox.close());
    }
  };
  return {
    baseUrl: sandbox.baseUrl,
    appId: sandbox.appId,
    appSecret: sandbox.appSecret,
    caPem: sandbox.caPem,
    caFile: sandbox.caFile,
    rpcUrl: sandbox.rpcUrl!,
    ...callerOf(connection, []),
    as: (...signers) => callerOf(connection, signers),
    signIn: async (user) => sessionOf(connection, await signIn(connection, user)),
    fetch: (input, init) => fetchOver(connection, new Request(input, init)),
    trust: () => trustInProcess(sandbox.caPem),
    async reset() {
      await collector?.collect();
      await resetSandbox(connection);
      collector?.startStretch();
      if (isRecording) startedAt = await newestPosition(connection);
    },
    async keep(file) {
      if (!isRecording)
        throw new Error('`keep` needs the requests, which this sandbox does not record: remove `record`');
      await keepState(connection, file, startedAt);
    },
    collect: async () => collector?.collect(),
    snapshot: async (name) => void (await saveSnapshot(connection, name, undefined)),
    load: async (name) => void (await loadSnapshot(connection, name, undefined)),
    clock: clockOf(connection),
    faults: {
      add: (rule) => addFault(connection, rule),
      list: () => listFaults(connection),
      clear: () => removeFaults(connection, []),
    },
    faucet: (recipient, deposit) => fund(connection, recipient, deposit),
    mine: async (count = 1, chain = undefined) =>
      void (await mineBlocks(connection, { count, ...(chain === undefined ? {} : { chain }) })),
    settle: () => sandbox.settle(),
    runScenario: (nameOrFile, options) => playScenario(connection, nameOrFile, options),
    async events(type, filter) {
      const found: SandboxEvent[] = [];
      for await (const event of listFeed(connection, queryOf(type, filter))) found.push(event);
      return found;
    },
    async waitForEvent(type, { timeoutMs = WAIT_FOR_EVENT_MS, ...filter } = {}) {
      const found = await awaitEvent(connection, queryOf(type, filter), {
        timeoutMs,
        onStart: () => undefined,
      });
      if (found !== undefined) return found;
      const conditions = filter.where === undefined ? '' : ` with ${JSON.stringify(filter.where)}`;
      const all: SandboxEvent[] = [];
      for await (const event of listFeed(
        connection,
        queryOf(undefined, filter.after === undefined ? {} : { after: filter.after }),
      ))
        all.push(event);
      const others = all.filter((event) => event.type === type);
      const nearest = nearMisses(others, { where: filter.where ?? {}, all });
      throw new Error(`no event \`${type}\`${conditions} within ${timeoutMs} ms, got ${nearest}`);
    },
    close,
    [Symbol.asyncDispose]: close,
  };
}

function fileOf(path: string | false | undefined): ConfigFile | undefined {
  const found = path === false ? undefined : findConfigFile(path);
  return found === undefined ? undefined : withoutPlaces(readConfigFile(found));
}

/**
 * Returns the settings of a configuration file. For a seed and seed data that the file does not set, the defaults are
 * those of this library.
 */
function settingsOf(file: ConfigFile): Partial<SandboxConfig> {
  const settings = { seed: 'test', seedData: true, funds: false, ...file.settings };
  return readSandboxConfig({}, 'exec', { ...file, settings });
}

function sessionOf(connection: Connection, session: SandboxSession): UserSession {
  const { access_token: accessToken } = session;
  return {
    ...callerOf(connection, [], accessToken),
    userId: session.user_id,
    sessionId: session.session_id,
    accessToken,
    refreshToken: session.refresh_token,
    identityToken: session.identity_token,
    customToken: session.custom_token ?? undefined,
    expiresAtMs: session.expires_at_ms,
    async signer() {
      const made = await callerOf(connection, []).call('authenticateWallets', {
        body: { user_jwt: accessToken },
      });
      return { privateKey: (made as RawWalletAuthenticateResponse).authorization_key };
    },
  };
}

/**
 * Sends a `Request` through the connection.
 *
 * NOTE: undici's `fetch` rejects a `Request` of Node.js, because their dispatchers have different versions.
 */
async function fetchOver({ dispatcher }: Connection, request: Request): Promise<Response> {
  const { url, method, redirect, signal } = request;
  const body = request.body === null ? null : await request.arrayBuffer();
  const headers = [...request.headers];
  return fetchWith(url, { method, headers, body, redirect, signal, dispatcher });
}

function clockOf(connection: Connection): TestClock {
  const change = async (body: Parameters<typeof changeClock>[1]) =>
    (await changeClock(connection, body)).now_ms;
  return {
    now: async () => (await readClock(connection)).now_ms,
    freeze: () => change({ frozen: true }),
    resume: () => change({ frozen: false }),
    set: (time) => change({ now_ms: Number(time) }),
    advance: (durationMs) => change({ advance_ms: durationMs }),
  };
}

function queryOf(type: string | undefined, { where = {}, after = 'start' }: EventFilter = {}) {
  return {
    after,
    types: type === undefined ? [] : [type],
    where: Object.entries(where).map(([path, value]) => `${path}=${value}`),
  };
}
