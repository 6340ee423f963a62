import type { SqlEntityManager } from '@mikro-orm/sql';
import { ATTEMPT_TIMEOUT_MS, type SigningSecret } from '../domain/access/webhooks/due-deliveries.ts';
import {
  type EndpointRow,
  holdEndpoint,
  readClaimedEndpoint,
  releaseEndpoint,
} from '../domain/access/webhooks/fan-out-events.ts';
import {
  openWebhookSecret,
  readWebhookSecrets,
  type SecretRow,
} from '../domain/access/webhooks/webhook-endpoint.ts';
import type { Claimant } from '../domain/base/processes/server-processes.ts';
import type { Heartbeat } from './heartbeat.ts';
import type { JobContext } from './job-context.ts';

/** What a delivery needs of the endpoint: its app, its URL, and the secrets that sign events. */
interface Target {
  readonly appId: string;
  readonly url: string;
  readonly secrets: readonly SigningSecret[];
}

/** A webhook endpoint that this process has claimed. */
export interface ClaimedEndpoint {
  /** Makes the next use read the endpoint again. Call it when the endpoint may have changed. */
  invalidate(): void;
  /**
   * Returns the current endpoint, claimed for longer than an attempt takes. Returns undefined when it is disabled,
   * deleted or claimed by another process.
   */
  target(): Promise<Target | undefined>;
  /** Reads the endpoint and other rows in the same transaction. Undefined in the same cases as `target`. */
  read<T>(
    readMore: (em: SqlEntityManager, nowMs: number) => Promise<T>,
  ): Promise<{ readonly endpoint: EndpointRow; readonly more: T } | undefined>;
  /**
   * Releases the endpoint, unless deliveries are already due.
   *
   * @param mustRelease releases it in any case.
   * @returns whether it was released.
   */
  release(mustRelease: boolean): Promise<boolean>;
}

/** The minimum remaining time of the claim when an attempt starts, which is longer than an attempt can take. */
const MIN_LEASE_MS = ATTEMPT_TIMEOUT_MS + 5_000;

interface Known {
  readonly target: Target;
  /** The secrets by id. They are decrypted once, because the key store may be a remote service. */
  readonly secrets: ReadonlyMap<string, SigningSecret>;
  readonly leasedUntilMs: number;
}

/**
 * Returns an endpoint that this process has claimed. Its row is read on first use.
 *
 * @param alive the heartbeat of this process. Undefined if no other process can take over its work.
 */
export function claimedEndpoint(
  id: string,
  { services, inUnit, alive }: JobContext & { readonly alive?: Pick<Heartbeat, 'confirm'> | undefined },
): ClaimedEndpoint {
  const { clock, keyStore, processId: owner } = services;
  /** The result of the last read. Undefined if this process must not use the endpoint. */
  let known: Known | undefined;
  let isStale = true;
  /** How many times this process had lost its claims when the endpoint was read. */
  let losses = 0;
  /** INVARIANT: reads run one after the other, so an older result never replaces a newer one. */
  let lastRead: Promise<unknown> = Promise.resolve();

  const claimant = (): Claimant => ({ owner, nowMs: clock.now() });
  const isLeaseShort = (): boolean => known !== undefined && known.leasedUntilMs - clock.now() < MIN_LEASE_MS;

  function afterLastRead<T>(work: () => Promise<T>): Promise<T> {
    const next = lastRead.then(work);
    lastRead = next.catch(() => undefined);
    return next;
  }

  async function readBy<T>(
    readEndpoint: typeof holdEndpoint,
    readMore: (em: SqlEntityManager, nowMs: number) => Promise<T>,
  ): Promise<{ endpoint: EndpointRow; more: T } | undefined> {
    // Reset before the read: a change that arrives during the read may be missing from its result, and sets `isStale`
    // again.
    isStale = false;
    try {
      const now = claimant();
      const read = await inUnit(async (em) => {
        const endpoint = await readEndpoint(em, now, id);
        if (endpoint === undefined) return undefined;
        const secrets = await readWebhookSecrets(em, id, now.nowMs);
        return { endpoint, secrets, more: await readMore(em, now.nowMs) };
      });
      known = read && (await learn(read.endpoint, read.secrets));
      return read;
    } catch (error) {
      isStale = true;
      throw error;
    }
  }

  async function learn(
    { app_id: appId, url, leased_until_ms: leasedUntilMs }: EndpointRow,
    rows: readonly SecretRow[],
  ): Promise<Known> {
    const opened = rows.map(async (row) => {
      const text = known?.secrets.get(row.id)?.text ?? (await openWebhookSecret(keyStore, row));
      return [row.id, { text, expiresAtMs: row.expires_at_ms }] as const;
    });
    const secrets = new Map(await Promise.all(opened));
    return {
      target: { appId, url, secrets: [...secrets.values()] },
      secrets,
      leasedUntilMs: leasedUntilMs ?? 0,
    };
  }

  async function refresh(): Promise<void> {
    // The first of several concurrent callers reads for all of them.
    if (isLeaseShort()) await readBy(holdEndpoint, async () => undefined);
    else if (isStale) await readBy(readClaimedEndpoint, async () => undefined);
  }

  /** Marks the endpoint as stale when this process has lost its claims, for example because it was suspended. */
  async function noticeLoss(): Promise<void> {
    const current = (await alive?.confirm()) ?? 0;
    if (current !== losses) isStale = true;
    losses = current;
  }

  async function refreshInTurn(): Promise<void> {
    if (isStale || isLeaseShort()) await afterLastRead(refresh);
  }

  return {
    invalidate() {
      isStale = true;
    },
    async target() {
      await noticeLoss();
      await refreshInTurn();
      // Read a second time if the endpoint was invalidated since. No loop, because under load every read is followed by
      // an invalidation.
      await refreshInTurn();
      return isLeaseShort() ? undefined : known?.target;
    },
    read: (readMore) => afterLastRead(() => readBy(holdEndpoint, readMore)),
    release: (mustRelease) => inUnit((em) => releaseEndpoint(em, claimant(), id, mustRelease)),
  };
}
