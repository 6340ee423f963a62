import type { SqlEntityManager } from '@mikro-orm/sql';
import { WebhookDeliveryEntity, WebhookEndpointEntity } from '../domain/access/webhooks/webhook.entity.ts';
import { FiatCustomerEntity } from '../domain/money/fiat-customers/fiat-customer.entity.ts';
import { TransactionEntity } from '../domain/money/transactions/transaction.entity.ts';
import { WalletActionStepEntity } from '../domain/money/wallet-actions/wallet-action.entity.ts';
import type { ControlContext } from './control-plane.ts';
import { findUpcoming, type Upcoming } from './find-upcoming.ts';

/** Longer than any check or retry is planned ahead. */
export const LONGEST_PLAN_MS = 24 * 3_600_000;

/**
 * CHOICE: the clock can be set to at most a century before 9999-12-31, the last date that the API's formats can
 * represent. So times that are planned from there, such as expiries, can be represented too.
 */
export const LAST_MS = Date.UTC(9900, 0, 1);

/**
 * Makes everything due at `nowMs` that was planned for later than `laterThanMs`. After the clock was set back, such
 * times may be years ahead. A check or a delivery that runs too early finds nothing to do, which is harmless.
 */
export async function bringDueTimesTo(
  em: SqlEntityManager,
  nowMs: number,
  laterThanMs: number = nowMs,
): Promise<void> {
  const isLater = { $gt: laterThanMs };
  await em.nativeUpdate(TransactionEntity, { nextCheckAtMs: isLater }, { nextCheckAtMs: nowMs });
  await em.nativeUpdate(WalletActionStepEntity, { nextCheckAtMs: isLater }, { nextCheckAtMs: nowMs });
  await em.nativeUpdate(FiatCustomerEntity, { nextCheckAtMs: isLater }, { nextCheckAtMs: nowMs });
  await em.nativeUpdate(WebhookDeliveryEntity, { nextAttemptAtMs: isLater }, { nextAttemptAtMs: nowMs });
  await em.nativeUpdate(WebhookEndpointEntity, { nextDueAtMs: isLater }, { nextDueAtMs: nowMs });
}

type TimeContext = Pick<ControlContext, 'clock' | 'read' | 'actJobs' | 'runDueJobs'>;

/**
 * CHOICE: when the clock is moved forward, it stops at the first twenty due times of each resource. After these, it
 * stops at most two hundred more times for all resources together. Twenty is enough for every schedule of Custos.
 * Without a limit, a polled resource, such as a transaction that no block ever includes, would stop the clock a million
 * times a month.
 */
const EXACT_STOPS = 20;
const COARSE_STOPS = 200;

/**
 * CHOICE: at the start and at each stop, the clock waits this long for the responses of webhook endpoints, because an
 * attempt at an endpoint that does not respond takes fifteen seconds. After `LONGEST_MS` of real time, the clock jumps
 * to its target.
 */
const ANSWER_MS = 2000;
const LONGEST_MS = 20_000;

/**
 * CHOICE: checks that are due within a quarter of a second share one stop. A chain reports nothing new in such a
 * short time, and transactions that were sent in quick succession would otherwise stop the clock for each check.
 */
const CHECKS_TOGETHER_MS = 250;

const checks: ReadonlySet<Upcoming['kind']> = new Set(['transaction_check', 'action_check']);

/** The maximum number of resources of one kind that are read to find the next stop. */
const LOOK_AHEAD = 50;

/** The kinds of upcoming events that a job handles. The other kinds only change the responses to later requests. */
const actedOn: ReadonlySet<Upcoming['kind']> = new Set([
  ...(['intent_expires', 'webhook_attempt', 'automation_run', 'transaction_check', 'action_check'] as const),
  ...(['customer_check', 'deposit_account_check', 'deposit_check', 'card_check'] as const),
]);

interface Stops {
  count: number;
  lastMs: number;
}

/**
 * Moves the clock to `targetMs` as if the time passed: it stops wherever something becomes due, and runs the jobs for
 * it. So a retry, a step of the bank or an automation happens at its own time and can plan the next one. At each
 * stop, waits for the responses of webhook endpoints, because they decide when the next attempt is due.
 */
export async function passTimeTo(targetMs: number, context: TimeContext): Promise<void> {
  const { clock, read, actJobs, runDueJobs } = context;
  const startMs = clock.now();
  const strideMs = Math.ceil((targetMs - startMs) / COARSE_STOPS);
  const stopsOf = new Map<string, Stops>();
  const endMs = performance.now() + LONGEST_MS;
  const isLate = (): boolean => performance.now() >= endMs;

  const nextStop = async (): Promise<number | undefined> => {
    const nowMs = clock.now();
    const search = { nowMs, limit: LOOK_AHEAD, kinds: actedOn };
    const upcoming = await read((em) => findUpcoming({ em, ...search }));
    const times = upcoming.map((entry) => {
      const stops = stopsOf.get(keyOf(entry));
      return stops === undefined || stops.count < EXACT_STOPS
        ? entry.atMs
        : Math.max(entry.atMs, stops.lastMs + strideMs);
    });
    // More resources may become due after the last one that was read, so stop there and read again.
    if (upcoming.length === LOOK_AHEAD) times.push(Math.max(upcoming.at(-1)!.atMs, nowMs + 1));
    const earliestMs = Math.min(...times);
    if (earliestMs > targetMs) return undefined;
    const isCheck = (index: number): boolean => index < upcoming.length && checks.has(upcoming[index]!.kind);
    const others = times.filter((_, index) => !isCheck(index));
    const latestMs = Math.min(earliestMs + CHECKS_TOGETHER_MS, targetMs, ...others);
    const nextMs = Math.max(...times.filter((atMs) => atMs <= latestMs));
    for (const entry of upcoming) {
      if (entry.atMs > nextMs) continue;
      const { count } = stopsOf.get(keyOf(entry)) ?? { count: 0 };
      stopsOf.set(keyOf(entry), { count: count + 1, lastMs: nextMs });
    }
    return nextMs;
  };

  await actJobs(ANSWER_MS);
  while (!isLate()) {
    const nextMs = await nextStop();
    if (nextMs === undefined) break;
    // Another caller, or the running clock itself, may have moved the time further.
    if (nextMs > clock.now()) clock.set(nextMs);
    await actJobs(ANSWER_MS);
  }
  if (targetMs > clock.now()) clock.set(targetMs);
  await runDueJobs();
}

function keyOf({ kind, resourceId }: Upcoming): string {
  return `${kind} ${resourceId}`;
}
