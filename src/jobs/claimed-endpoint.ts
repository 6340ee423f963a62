import type { SqlEntityManager } from '@mikro-orm/sql';
import type { SigningSecret } from '../domain/access/webhooks/attempt-delivery.ts';
import {
  type Claimant,
  type EndpointRow,
  holdEndpoint,
  readClaimedEndpoint,
  releaseEndpoint,
} from '../domain/access/webhooks/claim-endpoints.ts';
import { ATTEMPT_TIMEOUT_MS } from '../domain/access/webhooks/retry-schedule.ts';
import {
  openWebhookSecret,
  readWebhookSecrets,
  type SecretRow,
} from '../domain/access/webhooks/webhook-secrets.ts';
import type { JobContext } from './job-context.ts';

/** Where to send and what to sign with. */
interface Target {
  readonly url: string;
  readonly secrets: readonly SigningSecret[];
}

/** A webhook endpoint that this process has claimed. */
export interface ClaimedEndpoint {
  /** The endpoint may have been changed: it is read again before it is used again. */
  doubt(): void;
  /**
   * The endpoint as it is now, claimed for longer than an attempt takes; undefined when it is disabled, deleted or
   * claimed by another process.
   */
  target(): Promise<Target | undefined>;
  /** Reads the endpoint and, in the same transaction, more; undefined like `target`. */
  read<T>(
    readMore: (em: SqlEntityManager, nowMs: number) => Promise<T>,
  ): Promise<{ readonly endpoint: EndpointRow; readonly more: T } | undefined>;
  /**
   * Gives the endpoint back, unless something is due to it already.
   *
   * @param mustRelease gives it back in any case.
   * @returns whether it was given back.
   */
  release(mustRelease: boolean): Promise<boolean>;
}

/** An attempt begins only while the endpoint is claimed for longer than it can take. */
const LEAST_LEASE_MS = ATTEMPT_TIMEOUT_MS + 5_000;

interface Known {
  readonly target: Target;
  /** By id, opened once: a vault may be a service elsewhere. */
  readonly secrets: ReadonlyMap<string, SigningSecret>;
  readonly leasedUntilMs: number;
}

/** @param owner names this process among those that share the database. */
export function claimedEndpoint(
  id: string,
  { services, inUnit, owner }: JobContext & { readonly owner: string },
): ClaimedEndpoint {
  const { clock, vault } = services;
  /** What the last read showed; undefined when the endpoint is not for this process to use. */
  let known: Known | undefined;
  let isDoubtful = true;
  /** INVARIANT: reads follow each other, so that an older one never replaces what a newer one showed. */
  let lastRead: Promise<unknown> = Promise.resolve();

  const claimant = (): Claimant => ({ owner, nowMs: clock.now() });
  const isLeaseShort = (): boolean =>
    known !== undefined && known.leasedUntilMs - clock.now() < LEAST_LEASE_MS;

  function afterLastRead<T>(work: () => Promise<T>): Promise<T> {
    const next = lastRead.then(work);
    lastRead = next.catch(() => undefined);
    return next;
  }

  async function readBy<T>(
    readEndpoint: typeof holdEndpoint,
    readMore: (em: SqlEntityManager, nowMs: number) => Promise<T>,
  ): Promise<{ endpoint: EndpointRow; more: T } | undefined> {
    // A doubt that arises from here on is about what this read may not show.
    isDoubtful = false;
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
      isDoubtful = true;
      throw error;
    }
  }

  async function learn(
    { url, leased_until_ms: leasedUntilMs }: EndpointRow,
    rows: readonly SecretRow[],
  ): Promise<Known> {
    const opened = rows.map(async (row) => {
      const text = known?.secrets.get(row.id)?.text ?? (await openWebhookSecret(vault, row));
      return [row.id, { text, expiresAtMs: row.expires_at_ms }] as const;
    });
    const secrets = new Map(await Promise.all(opened));
    return { target: { url, secrets: [...secrets.values()] }, secrets, leasedUntilMs: leasedUntilMs ?? 0 };
  }

  async function refresh(): Promise<void> {
    // Of several that ask at once, the first reads for all.
    if (isLeaseShort()) await readBy(holdEndpoint, async () => undefined);
    else if (isDoubtful) await readBy(readClaimedEndpoint, async () => undefined);
  }

  async function refreshInTurn(): Promise<void> {
    if (isDoubtful || isLeaseShort()) await afterLastRead(refresh);
  }

  return {
    doubt() {
      isDoubtful = true;
    },
    async target() {
      await refreshInTurn();
      // Once more for a doubt that arose meanwhile. Not again: under many events every read is followed by a doubt.
      await refreshInTurn();
      return isLeaseShort() ? undefined : known?.target;
    },
    read: (readMore) => afterLastRead(() => readBy(holdEndpoint, readMore)),
    release: (mustRelease) => inUnit((em) => releaseEndpoint(em, claimant(), id, mustRelease)),
  };
}
