import { createHmac } from 'node:crypto';
import { createHttpJwks } from '../adapters/jwks-http.ts';
import { type AdjustableClock, adjustableClock, makeIds, systemClock } from '../adapters/runtime.ts';
import { anyAddress, createWebhookSender } from '../adapters/webhook-http.ts';
import type { SandboxConfig } from '../config/config.ts';
import { publishedSafeguards } from '../domain/base/safeguards/safeguards.ts';
import { preparedKeys, sandboxKeyStore } from '../keys/sandbox-keys.ts';
import { measuredKeyStore, measuredWebhooks } from '../observability/measured.ts';
import type { ServerMetrics } from '../observability/server-metrics.ts';
import type { Services } from '../ports/operation-context.ts';
import type { Clock, Log } from '../ports/runtime.ts';
import { createFaultRules } from '../sandbox/faults/fault-rules.ts';
import { drawTransactionFault, withAttemptFaults } from '../sandbox/faults/faults.ts';
import { DEVICE_PAGE, verifyPagePath } from '../sandbox/pages.ts';
import { simulatedCustodians } from '../sandbox/simulated/custodians.ts';
import { createLoginIssuer, type LoginIssuer } from '../sandbox/simulated/login-issuer.ts';
import type { Snapshot } from '../sandbox/snapshot-file.ts';
import { isLoopbackHost } from '../server/origins.ts';
import { sandboxChains } from './chains.ts';
import { fundWallet } from './funds.ts';
import { sandboxEntropy } from './sandbox-entropy.ts';
import type { SandboxMemory } from './sandbox-memory.ts';

/**
 * CHOICE: with a seed, `--clock frozen` stops the clock at this time, so that every run returns the same bytes.
 * Without `--clock`, even a seeded sandbox has a running clock: tokens look valid to clients that verify them by the
 * clock of their machine, and transactions are confirmed without further commands.
 */
const seededStartMs = Date.UTC(2026, 0, 1);

/** Creates the clock that `--clock` selects. */
function clockFor({ clock = 'now', seed }: Pick<SandboxConfig, 'clock' | 'seed'>): AdjustableClock {
  if (clock === 'now') return adjustableClock();
  if (clock !== 'frozen') return adjustableClock({ startMs: clock, frozen: true });
  return adjustableClock({ frozen: true, ...(seed === undefined ? {} : { startMs: seededStartMs }) });
}

/**
 * The name under which this process claims work. Every start uses the same name, so a restarted sandbox immediately
 * releases the claims of a killed one.
 */
const PROCESS_ID = 'sandbox';

/** What the ports of a sandbox need from outside. */
interface Outside {
  readonly log: Log;
  readonly machine: Clock;
  readonly metrics: ServerMetrics | undefined;
  /** The snapshot to start with. */
  readonly snapshot: Snapshot | undefined;
}

export function makeSandboxPorts(config: SandboxConfig, kept: SandboxMemory, outside: Outside) {
  const { log, machine, snapshot, metrics } = outside;
  const { state: memory } = kept;
  const randomness = sandboxEntropy(config.seed, memory.starts);
  const { entropy } = randomness;
  const clock = clockFor(config);
  const ids = makeIds(entropy);
  const faults = createFaultRules(randomness.faultEntropy);
  // The URL is known once the server listens. Links to the hosted page are created only in requests, which come later.
  let baseUrl = '';
  const pageOf = (token: string): string => baseUrl + verifyPagePath(token);
  const cardSecret = (): Uint8Array =>
    createHmac('sha256', kept.state.masterKeyHex).update('simulated card issuer').digest();
  const login = loginOf(config, kept);
  const image = config.dataFolder === undefined ? snapshot?.chains : undefined;
  const world = sandboxChains(config, {
    ...{ clock, log, ids, pageOf, cardSecret, image },
    drawFault: drawTransactionFault(faults),
    observeNode: metrics?.node,
    observeDisagreement: metrics?.disagreement,
  });
  const { chains, simulated, exchange, swapRoutes, incentives, vaultRates } = world;
  const { fiatProviders, fiatControls, cardIssuers, cardControls } = world;
  const phraseKeys = preparedKeys(randomness.phraseEntropy, { count: config.preparedKeys });
  const keyStore = sandboxKeyStore(memory.masterKeyHex, { keyEntropy: entropy, clock, phraseKeys });
  const sender = createWebhookSender({ guard: anyAddress });
  const ports: Omit<Services, 'uses'> = {
    clock,
    processId: PROCESS_ID,
    machine,
    devicePage: DEVICE_PAGE,
    // The seed determines ids, keys and secrets. Values that appear in no response, such as the nonces of seals, are
    // always random.
    entropy,
    ids,
    keyStore: measuredKeyStore(keyStore, metrics?.keyStore),
    jwks: createHttpJwks(systemClock),
    chains,
    prices: simulated.prices,
    custodians: simulatedCustodians,
    exchange,
    incentives,
    vaultRates,
    swapRoutes,
    fiatProviders,
    cardIssuers,
    webhooks: measuredWebhooks(withAttemptFaults(sender, faults), metrics?.webhook),
    log,
    prefix: config.prefix,
    diagnostics: true,
    safeguards: publishedSafeguards,
    fundWallet: config.fundNewWallets
      ? (wallet) => fundWallet({ chains: simulated, services: { log } }, wallet)
      : undefined,
  };
  return {
    ports,
    keyStore,
    clock,
    randomness,
    chains: simulated,
    fiat: fiatControls,
    baseUrl: () => baseUrl,
    cards: cardControls,
    login,
    listensAt: (url: string) => {
      baseUrl = url;
    },
    faults,
  };
}

/**
 * Creates the simulated login.
 *
 * CHOICE: the login's key is derived from the seed if only this machine can reach the sandbox. If other machines can,
 * it is derived from the master key, because someone else may know the seed.
 */
function loginOf(
  { host, seed }: Pick<SandboxConfig, 'host' | 'seed'>,
  kept: SandboxMemory,
): () => LoginIssuer {
  const issuers = new Map<string, LoginIssuer>();
  return () => {
    const { masterKeyHex } = kept.state;
    const origin = seed === undefined || !isLoopbackHost(host) ? masterKeyHex : seed;
    const issuer =
      issuers.get(origin) ??
      createLoginIssuer(createHmac('sha384', origin).update('simulated login').digest());
    issuers.set(origin, issuer);
    return issuer;
  };
}
