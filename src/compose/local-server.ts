import {
  loadOrCreateCertificate,
  type StoredCertificate,
  temporaryCertificateFolder,
} from '../adapters/certificate.ts';
import { makeLog, silentLog } from '../adapters/log.ts';
import { systemClock, systemEntropy } from '../adapters/runtime.ts';
import type { SandboxConfig } from '../config/config.ts';
import type { Log } from '../ports/runtime.ts';
import { isLoopbackHost, requireOwnHost } from '../server/origins.ts';
import type { PipelineOptions } from '../server/pipeline.ts';
import type { RateLimitOptions } from '../server/rate-limit.ts';
import type { Listening } from './listen.ts';

/** A wallet of the seed data, with its balances as decimal strings, by chain name. */
export interface FundedWallet {
  readonly name: string;
  readonly address: string;
  readonly balances: Readonly<Record<string, string>>;
}

export interface RunningSandbox extends Listening {
  readonly appId: string;
  readonly appSecret: string;
  /** The certificate authority to trust, as a file and as PEM. */
  readonly caFile: string;
  readonly caPem: string;
  /** The token with which other machines can use the control plane and the inspector. Undefined if they cannot. */
  readonly controlToken?: string | undefined;
  /** Whether other machines can reach the server. */
  readonly isExposed: boolean;
  /** The clock that clients can set. Undefined for a server without one. */
  readonly clock?: { readonly isFrozen: boolean; now(): number };
  /**
   * The base URL of the JSON-RPC of simulated chains: append a slash and the name of a chain. Undefined if there are
   * no simulated chains.
   */
  readonly rpcUrl?: string | undefined;
  /** Returns the funded wallets of the seed data. Undefined if the server has no such wallets. */
  readonly fundedWallets?: (() => Promise<readonly FundedWallet[]>) | undefined;
  /** Whether the server responds with examples. It then has no inspector and stores nothing. */
  readonly isMock?: boolean;
}

/**
 * Returns the certificate of a server on this machine. It is stored in the server's data folder, or without one in a
 * folder that all such servers share.
 */
export function loadLocalCertificate(config: SandboxConfig): Promise<StoredCertificate> {
  const hosts = [
    config.host,
    ...config.publicUrls.map((url) => new URL(url).hostname.replace(/^\[|\]$/g, '')),
  ];
  const everywhere = new Set(['0.0.0.0', '::']);
  return loadOrCreateCertificate(config.dataFolder ?? temporaryCertificateFolder(), {
    clock: systemClock,
    entropy: systemEntropy,
    hosts: hosts.filter((host) => !everywhere.has(host)),
  });
}

/**
 * Creates a log that writes JSON to standard output, or readable lines to standard error. With `quiet`, it writes
 * only errors.
 */
export function createLocalLog(config: SandboxConfig): Log {
  if (config.logLevel === 'silent') return silentLog;
  const level = config.quiet ? 'error' : config.logLevel;
  return makeLog({ level, format: config.json ? 'json' : 'text', descriptor: config.json ? 1 : 2 });
}

export function rateLimitOf({ rateLimit }: Pick<SandboxConfig, 'rateLimit'>): RateLimitOptions | undefined {
  if (rateLimit === undefined) return undefined;
  return { points: rateLimit.perSecond, durationSeconds: 1, burst: rateLimit.burst };
}

/** Rejects requests from web pages of other sites to a sandbox that only this machine can reach. */
export function requireOwnHostFirst(
  config: SandboxConfig,
  authenticate: PipelineOptions['authenticate'],
): PipelineOptions['authenticate'] {
  if (!isLoopbackHost(config.host)) return authenticate;
  const requireHost = requireOwnHost(config);
  return async (state) => {
    requireHost(state);
    await authenticate(state);
  };
}

/**
 * Adds a control token to the settings if one is needed.
 *
 * CHOICE: a sandbox that other machines can reach requires a token for its control plane, because for a container
 * every caller is another machine. Like the app secret, the token is random unless it is given, even with a seed.
 */
export function withControlToken(config: SandboxConfig): SandboxConfig {
  if (config.controlToken !== undefined || isLoopbackHost(config.host)) return config;
  return { ...config, controlToken: Buffer.from(systemEntropy.bytes(24)).toString('base64url') };
}
