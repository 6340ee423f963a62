import { silentLog } from '../../src/adapters/log.ts';
import { ChainUnavailableError, ProviderUnavailableError } from '../../src/adapters/outside-services.ts';
import { makeIds, seededEntropy } from '../../src/adapters/runtime.ts';
import { sandboxChains } from '../../src/compose/chains.ts';
import type { AnyChain, ChainStatus, Observation } from '../../src/ports/chains.ts';
import type { TransactionFault } from '../../src/ports/requests.ts';
import type { WebhookRequest, WebhookSender } from '../../src/ports/webhooks.ts';
import type { Random } from './random.ts';
import type { Life, Scheduler } from './scheduler.ts';

/** How often things fail, as fractions of 1. */
export interface Weather {
  /** Calls to chains and exchanges. */
  calls: number;
  /** Nodes that say of a transaction what is not so. */
  nodes: number;
  /** Statements and commits. */
  disk: number;
  /** Requests to webhook endpoints. */
  hooks: number;
  /** Transactions that enter a pool. */
  blocks: number;
}

export const calm: Weather = { calls: 0, nodes: 0, disk: 0, hooks: 0, blocks: 0 };

/** What nodes say of a transaction that they know, by which nothing is decided. */
const doubts: readonly ((observed: Observation) => ChainStatus)[] = [
  () => ({ kind: 'pending' }),
  () => ({ kind: 'unknown', isExpired: false }),
  () => ({ kind: 'undecided' }),
];
/** What all nodes say of it, up to some block, although it is there. */
const denied: readonly ((observed: Observation) => ChainStatus)[] = [
  (observed) => ({ kind: 'unknown', isExpired: false, observed }),
  (observed) => ({ kind: 'gone', as: 'replaced', observed }),
  (observed) => ({ kind: 'gone', as: 'expired', observed }),
];
/** The third observation in a row is believed. Nodes that all lie for longer decide what the chain is. */
const MAX_DENIALS = 2;

/** A request that a webhook endpoint has received. */
interface Received {
  readonly url: string;
  readonly id: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly bodyText: string;
  /** What the server may know about it. */
  readonly answer: 'accepted' | 'refused' | 'lost';
  readonly atMs: number;
}

interface OutsideOptions {
  readonly seed: string;
  readonly random: Random;
  readonly scheduler: Scheduler;
  readonly clock: { nowMs: number };
  readonly weather: Weather;
  note(text: string): void;
  /** Called before every call from the server. */
  onCall(): void;
}

export type Outside = ReturnType<typeof makeOutside>;

/** Everything that survives a crash of the server, and that is reached over a network. */
export function makeOutside(options: OutsideOptions) {
  const { seed, random, scheduler, clock, weather, note, onCall } = options;
  const entropy = seededEntropy(`${seed}\noutside`);
  const now = { now: () => clock.nowMs };
  const received: Received[] = [];
  const world = sandboxChains(
    {
      dataFolder: undefined,
      confirmAfterMs: undefined,
      rpc: [],
      forks: [],
      forkFolder: '/nowhere',
      swapRouters: new Map(),
      rewards: { distributors: new Map(), url: 'https://rewards.test', apiKey: undefined },
    },
    {
      clock: now,
      log: silentLog,
      ids: makeIds(entropy),
      pageOf: (token) => `https://custos.test/verify/${token}`,
      cardSecret: () => new Uint8Array(32).fill(9),
      drawFault: drawTransactionFault,
    },
  );

  function drawTransactionFault(): TransactionFault | undefined {
    if (!random.chance(weather.blocks)) return undefined;
    const effect = random.pick(['revert', 'drop', 'delay', 'reorganization'] as const);
    if (effect === 'delay') return { effect, delayMs: random.between(1, 600) * 1000 };
    return effect === 'reorganization' ? { effect, blocks: random.between(1, 5) } : { effect };
  }

  /** A call over the network: it takes its time, and its request or its answer may be lost. */
  async function call<T>(place: string, life: Life, work: () => Promise<T>): Promise<T> {
    const fail = (what: string): never => {
      throw /^(bank|issuer)\./.test(place)
        ? new ProviderUnavailableError(what)
        : new ChainUnavailableError(what);
    };
    // What is left of a process that has crashed goes no further than the gate.
    if (!life.isOver) onCall();
    await scheduler.gate(place, life);
    const isLost = random.chance(weather.calls);
    if (isLost && random.chance(0.5)) {
      note(`lost request ${place}`);
      return fail(`simulated: ${place} cannot be reached`);
    }
    const answer = await work();
    // The answer travels as well, while others continue.
    await scheduler.gate(`answer ${place}`, life);
    if (isLost) {
      note(`lost answer ${place}`);
      return fail(`simulated: the answer of ${place} is lost`);
    }
    return answer;
  }

  /** How often it was said of a transaction, by its hash, that it is not there. */
  const denials = new Map<string, number>();

  /**
   * Nodes that are behind do not know a transaction yet, those that are stuck see no block, those that disagree cannot
   * decide, and those that forget deny what a block includes, by blocks that come after it.
   */
  function asOfLyingNodes(place: string, hash: string, answer: unknown): unknown {
    if (!place.endsWith('statusOf') || !random.chance(weather.nodes)) return answer;
    const status = answer as ChainStatus;
    if (status.kind === 'unknown') return answer;
    const lie = random.pick(MAX_DENIALS > (denials.get(hash) ?? 0) ? [...doubts, ...denied] : doubts)(
      observedAfter(status),
    );
    if ('observed' in lie) denials.set(hash, (denials.get(hash) ?? 0) + 1);
    note(
      `lying ${place}: ${status.kind} as ${lie.kind}${'observed' in lie ? ` at ${lie.observed?.at}` : ''}`,
    );
    return lie;
  }

  function observedAfter(status: ChainStatus): Observation {
    const block = 'blockNumber' in status ? status.blockNumber : BigInt(clock.nowMs);
    return { at: block + BigInt(random.between(0, 5)), distance: 1n };
  }

  function reached<T extends object>(target: T, name: string, life: Life): T {
    const members = Object.entries(target).map(([member, value]: [string, unknown]) => {
      const place = `${name}.${member}`;
      if (typeof value === 'object' && value !== null && ['bundler', 'feePayer'].includes(member))
        return [member, reached(value, place, life)];
      if (typeof value !== 'function') return [member, value];
      const method = value as (...values: unknown[]) => Promise<unknown>;
      return [
        member,
        (...values: unknown[]) =>
          call(place, life, async () =>
            asOfLyingNodes(place, String(values[0]), await method.apply(target, values)),
          ),
      ];
    });
    return Object.fromEntries(members) as T;
  }

  const webhooksFor = (life: Life): WebhookSender => ({
    systemNow: () => clock.nowMs,
    urlFault: () => undefined,
    close: async () => undefined,
    async send({ url, headers, bodyText }: WebhookRequest) {
      onCall();
      await scheduler.gate('webhook', life);
      const fails = random.chance(weather.hooks);
      const fault = fails ? random.pick(['down', 'refused', 'lost'] as const) : undefined;
      const failed = { status: undefined, failure: 'connection_failed', durationMs: 1 } as const;
      if (fault === 'down') return failed;
      const answer = fault ?? 'accepted';
      const id = headers['webhook-id'] ?? '';
      received.push({ url, id, headers, bodyText, answer, atMs: clock.nowMs });
      note(`webhook ${answer} ${id} ${bodyText}`);
      await scheduler.gate('answer webhook', life);
      if (answer === 'lost') return failed;
      return { status: answer === 'accepted' ? 204 : 500, failure: undefined, durationMs: 1 };
    },
  });

  return {
    ...world,
    received,
    /** The ports of a process. */
    portsFor(life: Life) {
      const known = new Map<string, AnyChain | undefined>();
      return {
        chains: {
          find(caip2: string) {
            if (!known.has(caip2)) {
              const found = world.chains.find(caip2);
              known.set(caip2, found && reached(found, caip2, life));
            }
            return known.get(caip2);
          },
          listing: async () => (await world.chains.listing?.()) ?? [],
        },
        exchange: reached(world.exchange, 'exchange', life),
        fiatProviders: {
          find(...place: Parameters<typeof world.fiatProviders.find>) {
            const found = world.fiatProviders.find(...place);
            return found && { ...reached(found, 'bank', life), readHint: found.readHint };
          },
        },
        cardIssuers: {
          find(environment: Parameters<typeof world.cardIssuers.find>[0]) {
            const found = world.cardIssuers.find(environment);
            return found && reached(found, 'issuer', life);
          },
        },
        webhooks: webhooksFor(life),
      };
    },
  };
}
