import {
  loadOrCreateCertificate,
  type StoredCertificate,
  temporaryCertificateFolder,
} from '../adapters/certificate.ts';
import { systemClock } from '../adapters/clock.ts';
import { systemEntropy } from '../adapters/entropy.ts';
import { makeLog, silentLog } from '../adapters/log.ts';
import type { SandboxConfig } from '../config.ts';
import { createAuditTrail } from '../domain/base/audit/audit-log.ts';
import { isLoopbackHost, requireOwnHost } from '../http/origins/local-caller.ts';
import type { PipelineOptions } from '../http/pipeline.ts';
import type { RateLimitOptions } from '../http/rate-limit.ts';
import { inUnitOf, unitsOf } from '../http/unit-of-work.ts';
import type { Services } from '../operation-context.ts';
import type { Entropy } from '../ports/entropy.ts';
import type { Log } from '../ports/log.ts';
import type { Database } from '../storage/open-database.ts';
import type { Listening } from './listen.ts';

/** A running server on this machine. */
export interface RunningSandbox extends Listening {
  readonly appId: string;
  readonly appSecret: string;
  /** The certificate authority to trust, as a file and as PEM. */
  readonly caFile: string;
  readonly caPem: string;
  /** Opens the control plane and the inspector to callers on other machines; undefined: they are closed to them. */
  readonly controlToken?: string | undefined;
  /** Whether other machines can reach the server. */
  readonly isExposed: boolean;
  /** Undefined where there is no time to control. */
  readonly clock?: { readonly isFrozen: boolean; now(): number };
  /** Whether it answers with examples: it has no inspector and stores nothing. */
  readonly isMock?: boolean;
}

/** The certificate of a server on this machine: stored in its folder, or else in one that all such servers share. */
export function certificateFor(config: SandboxConfig): Promise<StoredCertificate> {
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

/** JSON on standard output, or readable lines on standard error; with `quiet` only errors. */
export function logFor(config: SandboxConfig): Log {
  if (config.logLevel === 'silent') return silentLog;
  const level = config.quiet ? 'error' : config.logLevel;
  return makeLog({ level, format: config.json ? 'json' : 'text', descriptor: config.json ? 1 : 2 });
}

export function rateLimitFor({ rateLimit }: Pick<SandboxConfig, 'rateLimit'>): RateLimitOptions | undefined {
  if (rateLimit === undefined) return undefined;
  return { points: rateLimit.perSecond, durationSeconds: 1, burst: rateLimit.burst };
}

/** The audit log of a sandbox: its keys, and where the requests are recorded, if they are. */
export function auditOf(
  { audit }: Pick<SandboxConfig, 'audit'>,
  {
    services: { vault },
    database,
    entropy,
  }: {
    readonly services: Pick<Services, 'vault'>;
    readonly database: Database;
    readonly entropy: Entropy;
  },
) {
  const reader = () => database.orm.em.fork();
  const trail = createAuditTrail({ ...{ vault, entropy, reader }, inUnit: inUnitOf(unitsOf(database)) });
  return { trail, audit: audit ? trail : undefined };
}

/** Refuses what web pages of other sites send to a sandbox that only this machine reaches. */
export function fromOwnHost(
  config: SandboxConfig,
  authenticate: PipelineOptions['authenticate'],
): PipelineOptions['authenticate'] {
  if (!isLoopbackHost(config.host)) return authenticate;
  const requireHost = requireOwnHost(config);
  return (exchange) => {
    requireHost(exchange);
    return authenticate(exchange);
  };
}
